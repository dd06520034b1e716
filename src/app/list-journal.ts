import type { JournalResponse } from '../contracts/api.ts';
import { InvalidInputError } from '../contracts/errors.ts';
import type { JobStore } from '../ports/job-store.ts';
import type { JournalStore, PiecePlace } from '../ports/journal-store.ts';
import { findJob, type PageQuery } from './query-jobs.ts';

function placeOf(cursor: string | undefined): PiecePlace | undefined {
  if (cursor === undefined) return undefined;
  const [, epoch = '', number = ''] = /^(\d{1,10})-(\d{1,10})$/.exec(cursor) ?? [];
  if (number === '')
    throw new InvalidInputError('cursor must be one that an earlier page gave', { field: 'cursor' });
  return { epoch: Number(epoch), number: Number(number) };
}

/**
 * A page of what the schedulers of a job have written down of their ticks; none of a job from before they did. Throws
 * `NotFoundError`, `InvalidInputError` for a strange cursor, and `UnreadableRecordError` where a piece cannot be read.
 */
export async function listJournal(
  { jobs, journals }: { readonly jobs: JobStore; readonly journals: JournalStore },
  id: string,
  { cursor }: Pick<PageQuery, 'cursor'>,
): Promise<JournalResponse> {
  const after = placeOf(cursor);
  const { jobId } = await findJob(jobs, id);
  const { pieces, isLast } = await journals.page(jobId, after);
  const last = pieces.at(-1);
  return { pieces, ...(isLast || last === undefined ? {} : { cursor: `${last.epoch}-${last.number}` }) };
}
