import type { MeanInterval } from '../lib/quantiles.ts';
import { type Check, type CheckKind, intervalText, rounded } from './experiment.ts';

/** A number that must come out as it is in the paper, to a millionth. */
export function exactly(what: string, paper: number, got: number | undefined): Check {
  const ok = got !== undefined && Math.abs(got - paper) <= 1e-6 * Math.max(1, Math.abs(paper));
  return { what, paper: rounded(paper), got: got === undefined ? 'nothing' : rounded(got), rule: 'equal', kind: 'value', ok };
}

/** A text that must be as in the paper. */
export const same = (what: string, paper: string, got: string): Check => ({
  what, paper, got, rule: 'the same', kind: 'value', ok: got === paper,
});

/** A mean over seeds whose 95 % interval must meet the paper's number, give or take `tolerance` (in its unit). */
export function within(
  what: string, paper: number, got: MeanInterval, terms: { readonly tolerance: number; readonly why: string; readonly kind?: CheckKind },
): Check {
  const { tolerance, why, kind = 'value' } = terms;
  return {
    what, paper, got: intervalText(got), rule: `the interval over runs meets the paper's ± ${rounded(tolerance)} (${why})`, kind,
    ok: got.low <= paper + tolerance && got.high >= paper - tolerance,
  };
}

/** A claim on the order or form of results; `got` says by what numbers it was judged. */
export const claim = (
  what: string, terms: { readonly paper: string; readonly got: string; readonly rule: string; readonly ok: boolean; readonly kind?: CheckKind },
): Check => ({ what, paper: terms.paper, got: terms.got, rule: terms.rule, kind: terms.kind ?? 'shape', ok: terms.ok });
