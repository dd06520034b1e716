import { readFile, writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { type Explanation, explanationSchema } from '../../src/contracts/explanation.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { ReplayReport } from '../../src/core/replay/replay-journal.ts';
import type { RunReport } from '../../src/report/run-report.ts';
import type { Workplace } from './command.ts';

/** What a run and its explanation have told. */
export interface ExplainedRun {
  readonly place: Workplace;
  readonly exitCode: number | null;
  readonly report: RunReport;
  readonly explanation: Explanation;
  /** What `explain` tells people. */
  readonly text: string;
}

export interface RunOrder {
  readonly place: Workplace;
  readonly job: JobSpecInput;
  readonly options: readonly string[];
}

/** Runs a job by the command, with nothing left up, and asks what happened and why. Output in `out`. */
export async function runExplained({ place, job, options }: RunOrder): Promise<ExplainedRun> {
  await writeFile(place.path('job.json'), JSON.stringify(job));
  const ran = await place.run('run', 'job.json', '--output', 'out', '--json', ...options);
  expect(ran.out, ran.err).not.toBe('');
  const report = JSON.parse(ran.out) as RunReport;
  const told = await place.run('explain', report.jobId, '--json');
  expect([told.exitCode, told.err]).toEqual([0, '']);
  const explanation = explanationSchema.parse(JSON.parse(told.out));
  const text = (await place.run('explain', report.jobId)).out;
  return { place, exitCode: ran.exitCode, report, explanation, text };
}

/** Decides a run again from its journal, and holds that all of its decisions are the same. */
export async function expectSameReplay(
  place: Workplace,
  jobId: string,
  ...where: readonly string[]
): Promise<void> {
  const again = await place.run('simulate', '--replay', jobId, '--json', ...where);
  expect(again.exitCode, again.err).toBe(0);
  const replayed = JSON.parse(again.out) as ReplayReport;
  expect([replayed.firstDifference, replayed.reproduced]).toEqual([undefined, replayed.ticks]);
}

/** Lines that a job's programs have added to a file of the place; none where there is none. */
export async function linesOf(place: Workplace, name: string): Promise<readonly string[]> {
  const text = await readFile(place.path(name), 'utf8').catch(() => '');
  return text.split('\n').slice(0, -1);
}

/** What was done beyond first attempts, but for what is named; that no outputs are copied is nothing that was done. */
export const otherActions = (
  { actions }: Explanation,
  ...known: readonly Explanation['actions'][number]['kind'][]
): Explanation['actions'] => actions.filter(({ kind }) => kind !== 'nothing-copied' && !known.includes(kind));
