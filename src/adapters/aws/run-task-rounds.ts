import { createHash } from 'node:crypto';
import type { LaunchBatch } from './launch-batches.ts';

/** What became of one RunTask: ECS told which tasks it has started, refused the call, or nobody knows. */
export type RunTaskAnswer = 'told' | 'refused' | 'none';

/** Batches that are remembered. One that is forgotten begins anew, and is told its old answers once more. */
const REMEMBERED = 10_000;

const attemptsOf = (batch: LaunchBatch): string =>
  `${batch[0].payload.jobId}/${batch.map(({ payload }) => payload.attemptId).join()}`;

/**
 * How often each batch has been asked for in vain. ECS answers a client token that it has seen as it did before, for up to a day,
 * also where it had no capacity: what is asked for again then must be another call. One that nobody has answered, and one that
 * has started tasks, must not be.
 *
 * Whoever takes a job over knows of no rounds. ECS tells it the answers of its predecessor's rounds, and it comes to what has not
 * been asked yet, or has started tasks, by as many throttled launches.
 */
export class RunTaskRounds {
  private readonly rounds = new Map<string, number>();

  /** Of the next call for a batch; 0 for the first. */
  of(batch: LaunchBatch): number {
    return this.rounds.get(attemptsOf(batch)) ?? 0;
  }

  /** Takes in what was answered at each place where a batch was asked for, of which no task has started. */
  inVain(batch: LaunchBatch, answers: readonly RunTaskAnswer[]): void {
    if (!answers.includes('told') || answers.includes('none')) return;
    const round = this.of(batch) + 1;
    const attempts = attemptsOf(batch);
    this.rounds.delete(attempts);
    this.rounds.set(attempts, round);
    const [oldest] = this.rounds.keys();
    if (this.rounds.size > REMEMBERED && oldest !== undefined) this.rounds.delete(oldest);
  }
}

/** A call that is repeated for want of an answer starts no second task; one at another place, or of another round, does. */
export function tokenOf(
  { provider, zone }: { readonly provider: 'FARGATE' | 'FARGATE_SPOT'; readonly zone?: string },
  batch: LaunchBatch,
  round: number,
): string {
  const place = `${zone === undefined ? '' : `/${zone}`}${provider === 'FARGATE' ? '' : '/spot'}`;
  const again = round === 0 ? '' : `/${String(round)}`;
  return createHash('sha256')
    .update(`${attemptsOf(batch)}${place}${again}`)
    .digest('hex');
}
