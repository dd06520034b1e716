import { fargateSizes, type Worker, type WorkerSize, workerSizes } from '../../contracts/job-spec.ts';
import type { StageView, TaskView } from '../model/job-view.ts';
import type { TickConfig } from '../model/tick-config.ts';
import { workerOf } from '../model/stage-worker.ts';

/** From the least memory to the most. */
const sizes = ['small', 'medium', 'large', 'xlarge'] as const satisfies readonly WorkerSize[];
const largest = 'xlarge';

const rankOf = ({ size }: Worker): number => sizes.indexOf(size);
const largerThan = (worker: Worker): WorkerSize | undefined => sizes[rankOf(worker) + 1];

const memoryOf = ({ kind, size }: Worker): string =>
  kind === 'lambda' ? `${workerSizes[size]} MB on Lambda` : `${fargateSizes[size].memoryMb} MB on Fargate`;

/** The worker that would do what this one could not; undefined where its failure asks for no other, or there is none. */
function remedy(worker: Worker, cause: string | undefined, mayLeaveLambda: boolean): Worker | undefined {
  const isOnLambda = worker.kind === 'lambda';
  if (cause === 'timeout' && isOnLambda && mayLeaveLambda) return { ...worker, kind: 'fargate' };
  if (cause !== 'out-of-memory') return undefined;
  const size = largerThan(worker);
  if (size !== undefined) return { ...worker, size };
  return isOnLambda && mayLeaveLambda ? { kind: 'fargate', size: largest } : undefined;
}

/** Whether tasks of a stage may go to Fargate. */
export const mayUseFargate = ({ shape }: StageView, hasFargate: boolean): boolean =>
  hasFargate && shape.mayUseFargate !== false;

/**
 * What the next attempt of a task is to run on: its stage's worker, or a larger one where an attempt ran out of
 * memory, or Fargate where one ran out of Lambda's time or its memory. Never less than any of its failures asks for.
 */
export function nextWorker(stage: StageView, task: TaskView, hasFargate: boolean): Worker {
  return task.attempts.reduce((worker, attempt): Worker => {
    const other = remedy(workerOf(stage, attempt), attempt.failure?.cause, mayUseFargate(stage, hasFargate));
    if (other === undefined) return worker;
    return {
      kind: worker.kind === 'fargate' ? 'fargate' : other.kind,
      size: rankOf(other) > rankOf(worker) ? other.size : worker.size,
    };
  }, workerOf(stage));
}

/** Why no Fargate helps, as something that can be done about it. */
function aboutFargate(stage: StageView, hasFargate: boolean): string {
  if (stage.shape.mayUseFargate === false) return 'or let it go to Fargate (worker.fallback is "none")';
  return hasFargate
    ? 'or run the stage on Fargate'
    : 'or deploy with Fargate (-c fargate=on), which this deployment lacks';
}

/** How often what one attempt has handed on is gone on with on Lambda, as its time runs out each time: for over four hours. */
const mostHandOns = 20;

/**
 * Whether a task goes on on Lambda where its attempts ran out of Lambda's time: each has handed on what it had done, or was
 * kept from that by what may pass, which is a failure like any other and may come as often.
 */
function goesOn({ attempts }: TaskView, attemptsPerTask: number): boolean {
  const timedOut = attempts.filter(({ failure }) => failure?.cause === 'timeout');
  const failed = timedOut.filter(({ saved }) => saved === undefined);
  if (timedOut.length > mostHandOns || failed.length >= attemptsPerTask) return false;
  return failed.every(({ failure }) => failure?.mayPass === true);
}

/**
 * Why no worker can do a task, with what would be right; undefined while one may. A task whose attempts ran out of
 * memory on the largest worker that there is, or out of Lambda's time where there is nothing else and nothing of what was
 * done was handed on, would do so again, unless something else kept them from it that may pass.
 */
export function hopeless(
  stage: StageView,
  task: TaskView,
  { hasFargate = false, attemptsPerTask }: Pick<TickConfig, 'hasFargate' | 'attemptsPerTask'>,
): string | undefined {
  for (const attempt of task.attempts) {
    const worker = workerOf(stage, attempt);
    const { cause, message } = attempt.failure ?? {};
    if (remedy(worker, cause, mayUseFargate(stage, hasFargate)) !== undefined) continue;
    const told = message === undefined || message === '' ? '' : `: ${message}`;
    if (cause === 'out-of-memory') {
      const what = `ran out of memory on the largest worker (${worker.size}, ${memoryOf(worker)})${told}`;
      const more = worker.kind === 'fargate' ? '' : `, ${aboutFargate(stage, hasFargate)}`;
      return `${what}; give it less to hold: smaller splits (splitBytes) or more partitions${more}`;
    }
    if (cause === 'timeout' && worker.kind === 'lambda' && !goesOn(task, attemptsPerTask)) {
      const less = 'give it less to do: smaller splits (splitBytes) or more partitions';
      return `ran out of Lambda's time${told}; ${less}, ${aboutFargate(stage, hasFargate)}`;
    }
  }
  return undefined;
}
