import type { Slowdown } from './slowdown.ts';

/**
 * Slowdowns of 8,388 attempts of Yahoo's Hadoop in 2009 (the `rumen` trace), by `slowdownTable` over
 * `recordedSlowdowns`: 2.8 % over 1.5, a long thin tail up to 32.
 */
export const HADOOP_SLOWDOWN: Extract<Slowdown, { kind: 'empirical' }> = {
  kind: 'empirical',
  points: [
    [0, 0.356],
    [0.01, 0.571],
    [0.05, 0.672],
    [0.1, 0.861],
    [0.25, 0.973],
    [0.5, 1],
    [0.75, 1.032],
    [0.9, 1.163],
    [0.95, 1.286],
    [0.98, 1.653],
    [0.99, 1.797],
    [0.995, 1.962],
    [0.999, 3.057],
    [0.9995, 3.523],
    [0.9999, 9.897],
    [1, 32.403],
  ],
};

/**
 * What those attempts have in common by host (1,499 hosts, 20,176 pairs on the same one), as the correlation of their
 * normal scores: of two that start within a minute, and of two that start further apart, which is the host's own. With
 * hosts shuffled within each stage both are 0.
 */
export const HADOOP_LUCK = { node: 0.15, spell: 0.19, spellMs: 60_000 } as const;

/** Slowdowns of 14,439 tasks of the Big Data Benchmark on Spark in 2014 (the `spark` trace); likewise. */
export const SPARK_SLOWDOWN: Slowdown = {
  kind: 'empirical',
  points: [
    [0, 0.495],
    [0.01, 0.567],
    [0.05, 0.758],
    [0.1, 0.894],
    [0.25, 0.937],
    [0.5, 1],
    [0.75, 1.066],
    [0.9, 1.176],
    [0.95, 1.361],
    [0.98, 1.813],
    [0.99, 2.643],
    [0.995, 3.061],
    [0.999, 3.468],
    [0.9995, 4.01],
    [0.9999, 4.594],
    [1, 4.806],
  ],
};
