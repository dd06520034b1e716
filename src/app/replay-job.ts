import { JournalReplay, type ReplayedTick, type ReplayReport } from '../core/replay/replay-journal.ts';
import type { JournalResponse } from '../contracts/api.ts';
import { eachPage } from '../lib/pages.ts';
import type { JournalPiece } from '../ports/journal-store.ts';

/** Gives the pieces of one job's journal, page by page. */
export type JournalPages = (cursor?: string) => Promise<JournalResponse>;

/** More than any job's schedulers write. */
const mostPages = 1_000_000;

/**
 * Lines of a journal, in order. Of a scheduler of whose pieces one is gone none after it are given, and of a line of
 * which the end is not there nothing.
 */
async function* linesOf(pages: JournalPages): AsyncGenerator<string> {
  let after: JournalPiece | undefined;
  let rest = '';
  let isBroken = false;
  for await (const { pieces } of eachPage(pages, mostPages)) {
    for (const piece of pieces) {
      const before = after?.epoch === piece.epoch ? after : undefined;
      if (before === undefined) rest = '';
      isBroken = before === undefined ? piece.number !== 0 : isBroken || piece.number !== before.number + 1;
      after = piece;
      if (isBroken) continue;
      const lines = (rest + piece.text).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  }
}

/**
 * Goes through a job's journal again by the rules of today, and says what came out alike. Throws `UnreadableRecordError`
 * where there is none, or it is spoilt, or of another version of Outrider.
 */
export async function replayJob(
  pages: JournalPages,
  onTick?: (tick: ReplayedTick) => void,
): Promise<ReplayReport> {
  const replay = new JournalReplay(onTick);
  for await (const line of linesOf(pages)) replay.take(line);
  return replay.report();
}
