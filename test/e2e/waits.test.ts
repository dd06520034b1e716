import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type ExplainedTask, type Explanation, explanationSchema } from '../../src/contracts/explanation.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { coreutils } from '../support/coreutils.ts';
import { Workplace } from './command.ts';
import { linesOf, otherActions, runExplained } from './explained-run.ts';

const tasks = 8;
const text = Buffer.from(Array.from({ length: 4_000 }, (_, line) => `${(line * 7919) % 4_000}\n`).join(''));

/** Tasks that take half a second without work, once a condition holds, so that only their worker keeps them waiting. */
const sleeping = (first = ':'): JobSpecInput => ({
  name: 'sleeping',
  policy: 'outrider',
  stages: [
    {
      name: 'wait',
      operator: 'exec',
      options: { command: ['sh', '-c', `${first}; sleep 0.5; cat`] },
      inputs: [{ s3: ['lines.txt'], splitBytes: Math.ceil(text.length / tasks) }],
    },
  ],
});

async function workplace(): Promise<Workplace> {
  const place = await Workplace.make();
  await writeFile(place.path('lines.txt'), text);
  return place;
}

/** What `explain` tells of each task of a job. */
async function tasksOf(place: Workplace, jobId: string): Promise<readonly ExplainedTask[]> {
  const told: ExplainedTask[] = [];
  for (let task = 0; task < tasks; task++) {
    const { out } = await place.run('explain', jobId, `wait/${task}`, '--json');
    told.push(...(explanationSchema.parse(JSON.parse(out)).stages[0]?.told ?? []));
  }
  return told;
}

/** One attempt of each task, and nothing decided beyond: read from the log of decisions. */
function expectOnlyWaiting(explanation: Explanation, told: readonly ExplainedTask[]): void {
  expect(explanation.log.state).toBe('whole');
  expect(
    told.flatMap(({ attempts }) => attempts.map(({ attemptId, reason, end }) => [attemptId, reason, end])),
  ).toEqual(Array.from({ length: tasks }, (_, task) => [`wait/${task}/0`, 'first', 'won']));
  expect(otherActions(explanation, 'slots')).toEqual([]);
  expect(explanation.failures).toEqual([]);
  expect(explanation.slowNodes).toEqual([]);
}

/** Tasks whose attempt waited for its worker for so long: none is a straggler, and the wait is all that is told of it. */
function longWaits(told: readonly ExplainedTask[], leastMs: number): readonly ExplainedTask[] {
  const long = told.filter(({ attempts: [first] }) => (first?.waitMs ?? 0) > leastMs);
  expect(long.length).toBeGreaterThan(0);
  for (const { straggler, causes } of long) {
    expect(straggler).toBe(false);
    expect(causes.map(({ kind }) => kind).filter((kind) => kind !== 'before-launch')).toEqual(['host-wait']);
  }
  return long;
}

describe('a cold start of many times what a task takes', () => {
  it('is waited for: no copy, no retry, no blame; and it is told', async () => {
    const place = await workplace();
    const { exitCode, report, explanation } = await runExplained({
      place,
      job: sleeping(),
      options: ['--slots', '4', '--inject', 'cold-start=0.5@8,seed=5'],
    });
    expect([exitCode, report.error]).toEqual([0, null]);
    expect(coreutils('sort', [], await place.parts('out')).equals(coreutils('sort', [], text))).toBe(true);
    const cold = report.injected?.places.coldStarts ?? [];
    expect(report.injected).toMatchObject({ coldStarts: cold.length, killed: 0 });
    expect(report.attempts).toMatchObject({ launched: tasks, lost: 0, backups: 0, clones: 0, declined: 0 });

    const told = await tasksOf(place, report.jobId);
    expectOnlyWaiting(explanation, told);
    const waited = longWaits(told, 8_000);
    for (const { taskId, attempts } of waited) {
      expect(cold.filter((late) => attempts[0]?.node?.endsWith(late) === true)).toHaveLength(1);
      expect((await place.run('explain', report.jobId, taskId)).out).toMatch(
        /waited \S+s for its worker, in the host's queue or for its start: the job had not used it before/,
      );
    }
  }, 180_000);
});

describe('a launch that lies in the queue of Lambda for many times what a task takes', () => {
  it('is waited for: no copy, no retry, no blame; and it is told', async () => {
    const place = await workplace();
    const gate = place.path('gate');
    const job = sleeping(`echo begun >> ${place.path('begun')}; while [ ! -e ${gate} ]; do sleep 0.1; done`);
    await writeFile(place.path('job.json'), JSON.stringify(job));
    const local = place.start('local', '--slots', '8', '--concurrency', '3');
    await local.saying('Ctrl-C ends it.');
    const submitted = await place.run('submit', 'job.json', '--json');
    const { jobId } = z.object({ jobId: z.string() }).parse(JSON.parse(submitted.out));
    await expect.poll(() => linesOf(place, 'begun'), { timeout: 60_000 }).not.toEqual([]);
    // Some hold the environments, for longer than a launch without a claim may be lost where there is no queue.
    await new Promise((resolve) => setTimeout(resolve, 17_000));
    await writeFile(gate, '');
    const watched = await place.run('watch', jobId, '--quiet');
    expect([watched.exitCode, watched.err]).toEqual([0, '']);

    const explanation = explanationSchema.parse(
      JSON.parse((await place.run('explain', jobId, '--json')).out),
    );
    const told = await tasksOf(place, jobId);
    expectOnlyWaiting(explanation, told);
    for (const { taskId } of longWaits(told, 15_000))
      expect((await place.run('explain', jobId, taskId)).out).toMatch(
        /waited \S+s for its worker, .*in the host's queue/,
      );
    const fetched = await place.run('get', jobId, 'out');
    expect([fetched.exitCode, fetched.err]).toMatchObject([0, expect.any(String)]);
    expect(coreutils('sort', [], await place.parts('out')).equals(coreutils('sort', [], text))).toBe(true);
    local.process.kill('SIGINT');
    expect((await local.finished).exitCode).toBe(0);
    await place.expectNoProcesses();
  }, 180_000);
});
