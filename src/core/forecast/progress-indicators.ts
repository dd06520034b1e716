import type { ProgressIndicatorName } from '../../contracts/forecast.ts';
import { amdahlParts } from './amdahl.ts';
import type { StageTotals } from './stage-totals.ts';

export { type ProgressIndicatorName, progressIndicatorNames } from '../../contracts/forecast.ts';

/** When a stage began and ended in an earlier run, as shares of that run, in [0, 1]. */
export interface StageSpan {
  readonly begin: number;
  readonly end: number;
}

/** What an indicator is made from. */
export interface IndicatorBasis {
  readonly totals: readonly StageTotals[];
  /** Tasks of each stage. */
  readonly tasks: readonly number[];
  /** Of each stage, in an earlier run; for `minstage`. */
  readonly spans?: readonly StageSpan[];
  /** Of each stage, in a simulated run with as many slots as it can use; for `minstage-inf`. */
  readonly unlimitedSpans?: readonly StageSpan[];
}

/** How far a job is, from 0 at its begin to 1 at its end, by what share of each stage's tasks has finished. */
export type ProgressIndicator = (fractions: readonly number[]) => number;

const byWeight =
  (weights: readonly number[]): ProgressIndicator =>
  (fractions) => {
    let whole = 0;
    let done = 0;
    for (const [index, weight] of weights.entries()) {
      whole += weight;
      done += weight * (fractions[index] ?? 0);
    }
    return whole === 0 ? 1 : done / whole;
  };

function bySpans(spans: readonly StageSpan[]): ProgressIndicator {
  // The last stage to end is the job's end.
  const whole = spans.reduce((most, { end }) => Math.max(most, end), 0);
  return (fractions) => {
    let least = whole;
    for (const [index, { begin, end }] of spans.entries()) {
      const fraction = fractions[index] ?? 0;
      if (fraction < 1) least = Math.min(least, begin + fraction * (end - begin));
    }
    return whole === 0 ? 1 : least / whole;
  };
}

function byCriticalPath(basis: IndicatorBasis): ProgressIndicator {
  const whole = amdahlParts(
    basis.totals,
    basis.totals.map(() => 0),
  ).serialMs;
  return (fractions) => (whole === 0 ? 1 : 1 - amdahlParts(basis.totals, fractions).serialMs / whole);
}

/**
 * The indicator of a name. All done is 1; a failure that undoes a task lowers it.
 *
 * Shapes as Jockey, §4.2; "cp" is the share of the critical path that is done.
 */
export function progressIndicator(name: ProgressIndicatorName, basis: IndicatorBasis): ProgressIndicator {
  switch (name) {
    case 'totalworkWithQ':
      return byWeight(basis.totals.map(({ workMs, queueMs }) => workMs + queueMs));
    case 'totalwork':
      return byWeight(basis.totals.map(({ workMs }) => workMs));
    case 'vertexfrac':
      return byWeight(basis.tasks);
    case 'cp':
      return byCriticalPath(basis);
    case 'minstage':
      return bySpans(basis.spans ?? []);
    case 'minstage-inf':
      return bySpans(basis.unlimitedSpans ?? []);
  }
}
