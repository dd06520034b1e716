import type { AttemptsResponse } from '../contracts/api.ts';
import { oneLine } from '../report/format.ts';
import { badInput } from './failures.ts';

type Attempts = Omit<AttemptsResponse, 'cursor'>;

/** Those of one stage, task or attempt, where it is named. Throws where there is nothing of that name. */
export function attemptsOf(all: Attempts, task: string | undefined, jobId: string): Attempts {
  if (task === undefined) return all;
  const attempts = all.attempts.filter(({ attemptId }) => `${attemptId}/`.startsWith(`${task}/`));
  if (attempts.length === 0)
    throw badInput(
      `job ${jobId} has no attempts of "${oneLine(task)}": "outrider attempts ${jobId}" names all`,
    );
  return { ...all, attempts };
}
