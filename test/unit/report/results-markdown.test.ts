import { expect, it } from 'vitest';
import { claim, exactly } from '../../../src/experiments/checks.ts';
import type { ExperimentResult } from '../../../src/experiments/experiment.ts';
import { resultsMarkdown } from '../../../src/report/results-markdown.ts';

const experiment = { name: 'sleep', title: 'tasks that sleep', source: 'LATE §6' };
const result: ExperimentResult = {
  name: 'sleep',
  seed: 1,
  seeds: 10,
  rows: [
    { table: 'times', policy: 'a|b', meanS: 1.23456 },
    { table: 'times', policy: 'c', meanS: null },
    { table: 'waste', wastedS: 3 },
  ],
  checks: [
    exactly('end, s', 5, 6),
    claim('order', { paper: 'a > b', got: '2, 1', rule: 'a > b; two\nlines', ok: false }),
    claim('aside', { paper: 'more', got: 'less', rule: 'more', ok: false, kind: 'side' }),
  ],
  verdict: 'differs',
};

it('says the verdict of each, its tables under their names, its checks, and what differs', () => {
  const page = resultsMarkdown([{ experiment, result }], ['walk', 'run']).split('\n');
  expect(page).toContain('| [sleep](#sleep) | tasks that sleep | 10 | differs | 0 of 2 | 0 of 1 |');
  const times = page.indexOf('**times**');
  expect(page.slice(times, times + 6)).toEqual([
    '**times**',
    '',
    '| policy | meanS |',
    '| --- | --- |',
    '| a\\|b | 1.235 |',
    '| c | - |',
  ]);
  expect(page).toContain('Not run for this page: walk, run.');
  expect(page).toContain('| wastedS |');
  expect(page).toContain('| aside | more | less | no, aside | more |');
  expect(page).toContain('- order: a > b; two lines');
  expect(page).not.toContain('- aside: more');
});

it('names what the jobs ran on, where that is a host of the simulator', () => {
  const pageOn = (host?: 'lambda' | 'hadoop'): string =>
    resultsMarkdown([{ experiment: { ...experiment, ...(host && { host }) }, result }], []);
  expect(pageOn()).toContain('intervals are of 95 %. **differs**');
  expect(pageOn('lambda')).toContain('of 95 %; on simulated Lambda (host lambda). **differs**');
  expect(pageOn('hadoop')).toContain(
    "of 95 %; on the papers' clusters (host hadoop: fixed nodes, kills at once). **differs**",
  );
});

it('names nothing that differs where all holds', () => {
  const held = { ...result, checks: [exactly('end, s', 5, 5)], verdict: 'reproduced' as const };
  const page = resultsMarkdown([{ experiment, result: held }], []);
  expect(page).not.toContain('What differs');
  expect(page).not.toContain('Not run');
});

it('says how it came out with another seed, and what that turned', () => {
  const others = [
    { seed: 2, verdict: 'differs' as const, turned: ['end, s'] },
    { seed: 3, verdict: 'reproduced' as const, turned: [] },
  ];
  const page = resultsMarkdown([{ experiment, result: { ...result, others } }], []);
  expect(page).toContain(
    '**differs**. Run again: with seed 2 differs, with seed 3 reproduced; turned: end, s.',
  );
  const steady = { ...result, others: [{ seed: 2, verdict: 'differs' as const, turned: [] }] };
  expect(resultsMarkdown([{ experiment, result: steady }], [])).toContain('no check turned.');
});
