import { describe, expect, it } from 'vitest';
import type { Experiment, ExperimentResult } from '../../../src/experiments/experiment.ts';
import { renderExperiment } from '../../../src/report/experiment-report.ts';
import { makeStyle } from '../../../src/report/style.ts';

const plain = makeStyle({ isTty: false, env: {} });
const experiment: Experiment = {
  name: 'two-tables',
  title: 'Two tables',
  source: 'nowhere',
  defaultSeeds: 1,
  traces: [],
  run: () => Promise.resolve({ rows: [], checks: [] }),
};
const result = (rows: ExperimentResult['rows']): ExperimentResult => ({
  name: 'two-tables',
  seed: 1,
  seeds: 1,
  rows,
  checks: [],
  verdict: 'same-shape',
});
const tablesOf = (rows: ExperimentResult['rows']): string[] =>
  renderExperiment(experiment, result(rows), plain)
    .slice(3, -3)
    .map((line) => line.trimEnd());

describe('the report of an experiment', () => {
  it('shows rows that name a table in one of their own, without columns of the others', () => {
    expect(
      tablesOf([
        { table: 'bins', bin: 1, jobs: 20 },
        { table: 'bins', bin: 2, jobs: 3 },
        { table: 'budget', share: 0.05, gain: 0.4567 },
      ]),
    ).toEqual(['bins', 'bin  jobs', '  1    20', '  2     3', '', 'budget', 'share   gain', ' 0.05  0.457']);
  });

  it('shows other rows together, with a dash where one has no value', () => {
    expect(tablesOf([{ a: 1 }, { a: 2, b: 'x' }])).toEqual(['a  b', '1  -', '2  x']);
  });
});
