import { mean, median } from '../../src/lib/quantiles.ts';
import { renderTable } from '../../src/report/table.ts';

/** Two runs with one straggler each, one of them with clones. */
export interface PairTimes {
  /** The stage that the straggler was in. */
  readonly slow: string;
  readonly withoutMs: number;
  readonly withMs: number;
  /** Whether the run with clones ended only after its straggler had. */
  readonly isAwaited: boolean;
}

/** What a batch of runs took, controls without a straggler among them. */
export interface BatchTimes {
  /** What a straggler adds to the critical path of a job that waits for it, by how it was injected. */
  readonly addedMs: number;
  readonly pairs: PairTimes[];
  /** Without a straggler: neither clones nor a straggler. */
  readonly plainMs: number[];
  /** Without a straggler: clones alone. */
  readonly clonedMs: number[];
}

/** Shares of the time without clones that clones save; the times are medians. NaN without runs. */
export interface BatchSummary {
  readonly plainMs: number;
  readonly clonedMs: number;
  /** Mean over the pairs of 1 − with / without. */
  readonly meanGain: number;
  /**
   * 1 − K / (B + a): a job without clones takes what it would without its straggler (B) and what that adds (a); one
   * with clones takes what clones take where nothing straggles (K).
   */
  readonly expectedGain: number;
  /** a / (B + a): the same if clones cost nothing. */
  readonly freeGain: number;
  /** What the straggler added to the runs without clones, over what was injected: 1 if nothing hid it. */
  readonly addedShare: number;
}

const gainOf = ({ withMs, withoutMs }: PairTimes): number => 1 - withMs / withoutMs;

/** The measured gain, and the one that follows from the controls and the injected time alone. */
export function summaryOf({ addedMs, pairs, plainMs, clonedMs }: BatchTimes): BatchSummary {
  const plain = median(plainMs) ?? Number.NaN;
  const cloned = median(clonedMs) ?? Number.NaN;
  const straggled = median(pairs.map(({ withoutMs }) => withoutMs)) ?? Number.NaN;
  return {
    plainMs: plain,
    clonedMs: cloned,
    meanGain: mean(pairs.map(gainOf)) ?? Number.NaN,
    expectedGain: 1 - cloned / (plain + addedMs),
    freeGain: addedMs / (plain + addedMs),
    addedShare: (straggled - plain) / addedMs,
  };
}

const seconds = (ms: number): string => (ms / 1_000).toFixed(2);
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

/** A line for each pair, then the mean, the extremes, and what was expected. */
export function renderBatch(times: BatchTimes): readonly string[] {
  const { pairs, plainMs, clonedMs, addedMs } = times;
  const { expectedGain, freeGain, addedShare, ...summary } = summaryOf(times);
  const gains = pairs.map(gainOf);
  const without = pairs.map(({ withoutMs }) => withoutMs);
  const withClones = pairs.map(({ withMs }) => withMs);
  const total = (name: string, of: (values: readonly number[]) => number): string[] => [
    name,
    '',
    seconds(of(without)),
    seconds(of(withClones)),
    percent(of(gains)),
  ];
  return [
    ...renderTable(
      [
        { heading: 'pair', align: 'left' },
        { heading: 'straggler in', align: 'left' },
        { heading: 'without clones, s', align: 'right' },
        { heading: 'with clones, s', align: 'right' },
        { heading: 'gain', align: 'right' },
      ],
      [
        ...pairs.map((each, index) => [
          String(index + 1),
          each.slow,
          seconds(each.withoutMs),
          seconds(each.withMs),
          percent(gainOf(each)),
        ]),
        total('mean', (values) => mean(values) ?? Number.NaN),
        total('least', (values) => Math.min(...values)),
        total('most', (values) => Math.max(...values)),
      ],
    ),
    `no straggler: ${seconds(summary.plainMs)} s without clones, ${seconds(summary.clonedMs)} s with them (medians of ${plainMs.length} and ${clonedMs.length})`,
    `a straggler adds ${seconds(addedMs)} s; to the runs without clones it added ${percent(addedShare)} of that`,
    `expected gain: ${percent(expectedGain)}; ${percent(freeGain)} if clones cost nothing`,
  ];
}
