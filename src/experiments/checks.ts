import type { MeanInterval } from '../lib/quantiles.ts';
import { type Check, type CheckKind, intervalText, rounded } from './experiment.ts';

/** A number that must come out as it is in the paper, to a millionth. */
export function exactly(what: string, paper: number, got: number | undefined): Check {
  const ok = got !== undefined && Math.abs(got - paper) <= 1e-6 * Math.max(1, Math.abs(paper));
  return {
    what,
    paper: rounded(paper),
    got: got === undefined ? 'nothing' : rounded(got),
    rule: 'equal',
    kind: 'value',
    ok,
  };
}

/** A text that must be as in the paper. */
export const same = (what: string, paper: string, got: string): Check => ({
  what,
  paper,
  got,
  rule: 'the same',
  kind: 'value',
  ok: got === paper,
});

/**
 * The same, left out of the verdict: the paper's column holds what we worked out ourselves from the paper's rules or from
 * guessed inputs. It shows that the code does what was meant, and is no evidence that the paper's figure comes out.
 */
export const derived = (check: Check): Check => ({ ...check, kind: 'side' });

/** On what terms a mean agrees with a number of the paper. */
export interface Tolerance {
  /** In the number's unit. */
  readonly tolerance: number;
  readonly why: string;
  /** Most of the half-width of the interval over seeds that counts, so that noise is no agreement; the tolerance unless told. */
  readonly mostNoise?: number;
  readonly kind?: CheckKind;
}

/** A mean over seeds that must be the paper's number, give or take the tolerance and the 95 % interval of the mean. */
export function within(what: string, paper: number, got: MeanInterval, terms: Tolerance): Check {
  const { tolerance, why, mostNoise = tolerance, kind = 'value' } = terms;
  const allowed = tolerance + Math.min(mostNoise, got.high - got.mean);
  return {
    what,
    paper,
    got: intervalText(got),
    rule: `the mean within ${rounded(allowed)}: ${rounded(tolerance)} (${why}) and the interval`,
    kind,
    ok: Math.abs(got.mean - paper) <= allowed,
  };
}

/** A claim on the order or form of results; `got` says by what numbers it was judged. */
export const claim = (
  what: string,
  terms: {
    readonly paper: string;
    readonly got: string;
    readonly rule: string;
    readonly ok: boolean;
    readonly kind?: CheckKind;
  },
): Check => ({
  what,
  paper: terms.paper,
  got: terms.got,
  rule: terms.rule,
  kind: terms.kind ?? 'shape',
  ok: terms.ok,
});
