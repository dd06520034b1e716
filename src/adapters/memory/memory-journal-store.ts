import type { JobId } from '../../contracts/ids.ts';
import type { JournalPiece, JournalStore, PiecePlace } from '../../ports/journal-store.ts';

const piecesPerPage = 4;

/** Journals in memory. */
export class MemoryJournalStore implements JournalStore {
  private readonly journals = new Map<JobId, Map<string, JournalPiece>>();

  append(jobId: JobId, piece: JournalPiece): Promise<void> {
    const journal = this.journals.get(jobId) ?? new Map<string, JournalPiece>();
    this.journals.set(jobId, journal);
    const place = `${piece.epoch}/${piece.number}`;
    if (!journal.has(place)) journal.set(place, { ...piece });
    return Promise.resolve();
  }

  page(
    jobId: JobId,
    after: PiecePlace = { epoch: -1, number: 0 },
  ): Promise<{ readonly pieces: readonly JournalPiece[]; readonly isLast: boolean }> {
    const rest = [...(this.journals.get(jobId)?.values() ?? [])]
      .filter((each) => isBefore(after, each))
      .sort((a, b) => (isBefore(a, b) ? -1 : 1));
    const pieces = rest.slice(0, piecesPerPage);
    return Promise.resolve({ pieces, isLast: pieces.length === rest.length });
  }
}

const isBefore = (a: PiecePlace, b: PiecePlace): boolean =>
  a.epoch < b.epoch || (a.epoch === b.epoch && a.number < b.number);
