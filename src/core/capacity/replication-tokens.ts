import type { JobId } from '../../contracts/ids.ts';
import type { JobState } from '../model/job-view.ts';
import { timesRedone } from '../model/lost-outputs.ts';
import { inputOf } from '../model/task-input.ts';
import type { Ledger, Move } from './ledger.ts';

/** Of each byte that a job's tasks have processed, what may be spent on replicas of outputs. */
const tokensPerByte = 0.1;

/** Replicas that a job would make. */
export interface TokenAsking {
  readonly jobId: JobId;
  /** Which of the job's schedulers asks: one that was replaced gets nothing. */
  readonly epoch: number;
  /** Tokens that the job has earned: see `earnedTokens`. */
  readonly earned: number;
  /** Bytes of all replicas by the job's decision log, and of those that it would make now. */
  readonly spent: number;
  readonly totalSlots: number;
}

/**
 * Tokens that a job has earned: a tenth of the bytes that its finished tasks have read, in whole bytes, each time anew
 * where their output was lost since: losses, after which copies are worth most, take none of them away. It follows from
 * results and the log, so that whoever takes the job over finds the same.
 *
 * Source: Mantri §5.3: at most 10 % of the data that a job processes is replicated.
 */
export function earnedTokens({ stages }: Pick<JobState, 'stages'>): number {
  let bytes = 0;
  for (const { tasks } of stages)
    for (const task of tasks) {
      const { result } = task;
      bytes += (result?.bytesIn ?? 0) + timesRedone(task) * (result?.bytesIn ?? inputOf(task));
    }
  return Math.floor(bytes * tokensPerByte);
}

/**
 * What a job may have spent once it has said what it has: that, since only what is logged is spent, and what a scheduler
 * was admitted and died before it could log is there again. Undefined: it has said nothing and was never admitted any.
 */
export const tokensStated = (before: number | undefined, spent: number | undefined): number | undefined =>
  spent === undefined || (before === undefined && spent === 0) ? before : spent;

/**
 * Admits replicas of a job, all of those asked for or none: only while what they and the earlier ones take is earned.
 * Answers how many bytes the job may have spent in all, at least those that it was admitted before. Asked again, by
 * whoever takes the job over or after a lost answer, it charges nothing twice, since what is asked for is a sum. A job
 * that is not in the ledger may spend nothing.
 *
 * Source: Mantri §5.3: too few tokens, no replica.
 */
export function spendTokens(ledger: Ledger, asking: TokenAsking): Move<number> {
  const { jobId, epoch, earned, spent, totalSlots } = asking;
  const own = ledger.holdings.get(jobId);
  if (own === undefined || own.epoch > epoch) return { answer: 0, totalSlots, changes: new Map() };
  const { tokens = 0 } = own;
  if (spent <= tokens || spent > earned) return { answer: tokens, totalSlots, changes: new Map() };
  return { answer: spent, totalSlots, changes: new Map([[jobId, { ...own, tokens: spent }]]) };
}
