import type { JournalResponse } from '../contracts/api.ts';
import { ServiceUnavailableError } from './failures.ts';

/** More than the schedulers of any job write: each stays 13 minutes at most, and bounds what it writes. */
const mostPages = 100_000;

/** All pieces of a job's journal, in order. */
export async function wholeJournal(
  ask: (cursor?: string) => Promise<JournalResponse>,
): Promise<JournalResponse['pieces']> {
  const pieces: JournalResponse['pieces'][number][] = [];
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const answer = await ask(cursor);
    pieces.push(...answer.pieces);
    if (answer.cursor === undefined) return pieces;
    cursor = answer.cursor;
  }
  throw new ServiceUnavailableError('the journal of the job did not end', { pages: mostPages });
}
