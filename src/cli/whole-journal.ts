import type { JournalResponse } from '../contracts/api.ts';
import { eachPage } from '../lib/pages.ts';
import { ServiceUnavailableError } from './failures.ts';

/** More than the schedulers of any job write: each stays 13 minutes at most, and bounds what it writes. */
const mostPages = 100_000;

/** All pieces of a job's journal, in order. */
export async function wholeJournal(
  ask: (cursor?: string) => Promise<JournalResponse>,
): Promise<JournalResponse['pieces']> {
  const pieces: JournalResponse['pieces'][number][] = [];
  for await (const page of eachPage(ask, mostPages)) {
    pieces.push(...page.pieces);
    if (page.cursor === undefined) return pieces;
  }
  throw new ServiceUnavailableError('the journal of the job did not end', { pages: mostPages });
}
