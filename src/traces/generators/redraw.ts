import { mean, median } from '../../lib/quantiles.ts';
import type { Rng } from '../../lib/rng.ts';
import type { TimedTask } from './work.ts';

/** No task is foretold less than this share of its stage's mean. */
const leastShare = 0.1;

/**
 * The input of each task of a stage. One of which the trace tells none (a task that never ended) reads as much as the
 * middle one of its siblings; where none is known, each reads `unknownBytes`.
 */
export function inputsOf(
  tasks: readonly { readonly inputBytes?: number | undefined }[],
  unknownBytes: number,
): number[] {
  const usual = median(tasks.flatMap(({ inputBytes }) => inputBytes ?? [])) ?? unknownBytes;
  return tasks.map(({ inputBytes }) => inputBytes ?? usual);
}

/** What each task's input foretells of its time, by least squares over its stage: never falling with size. */
function foretoldMs(tasks: readonly TimedTask[]): number[] {
  const bytes = inputsOf(tasks, 0);
  const meanBytes = mean(bytes) ?? 0;
  const meanMs = mean(tasks.map(({ workMs }) => workMs)) ?? 0;
  const spread = bytes.reduce((sum, each) => sum + (each - meanBytes) ** 2, 0);
  const joint = tasks.reduce(
    (sum, task, index) => sum + ((bytes[index] ?? 0) - meanBytes) * (task.workMs - meanMs),
    0,
  );
  const slope = spread === 0 ? 0 : Math.max(0, joint / spread);
  return bytes.map((each) => Math.max(meanMs * leastShare, meanMs + slope * (each - meanBytes)));
}

function residualsOf(tasks: readonly TimedTask[]): {
  readonly foretold: number[];
  readonly residuals: number[];
} {
  const foretold = foretoldMs(tasks);
  return {
    foretold,
    residuals: tasks.map(({ workMs }, index) => workMs / Math.max(1, foretold[index] ?? 0)),
  };
}

/** What an attempt of each task takes by its input: in the mean over draws, and ordinarily (in the middle of them). */
export function usualTimes(tasks: readonly TimedTask[]): {
  readonly meanMs: number[];
  readonly middleMs: number[];
} {
  const { foretold, residuals } = residualsOf(tasks);
  const [average, middle] = [mean(residuals) ?? 1, median(residuals) ?? 1];
  return { meanMs: foretold.map((ms) => ms * average), middleMs: foretold.map((ms) => ms * middle) };
}

/**
 * Draws what a later attempt of a task (by its place) takes: what its input foretells times what a task drawn from its
 * stage took over its own. Without inputs that is a draw from the stage's times, as in Mantri's simulator (§6); with
 * them no copy makes a large task small, nor a small one large.
 */
export function redrawsOf(tasks: readonly TimedTask[]): (task: number, rng: Rng) => number {
  const { foretold, residuals } = residualsOf(tasks);
  return (task, rng) => (foretold[task] ?? 0) * (residuals[Math.floor(rng.next() * residuals.length)] ?? 1);
}
