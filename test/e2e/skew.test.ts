import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { AttemptRecord } from '../../src/contracts/records.ts';
import type { ExplainedTask } from '../../src/contracts/explanation.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { Workplace } from './command.ts';
import { linesOf, otherActions, runExplained } from './explained-run.ts';

const tasks = 12;
const taskBytes = 64 * 1024;
const text = Buffer.from(
  Array.from({ length: (tasks * taskBytes) / 64 }, (_, line) => `${String(line).padStart(63)}\n`).join(''),
);

/** Passes its input on bit by bit, and says what time it is. */
const program = (clocks: string): string => `
  const { appendFile } = await import('node:fs/promises');
  await appendFile(${JSON.stringify(clocks)}, String(Date.now() - Number(process.hrtime.bigint() / 1_000_000n)) + '\\n');
  for await (const chunk of process.stdin)
    for (let at = 0; at < chunk.length; at += 4096) {
      process.stdout.write(chunk.subarray(at, at + 4096));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }`;

const jobOf = (clocks: string): JobSpecInput => ({
  name: 'skewed',
  stages: [
    {
      name: 'pass',
      operator: 'exec',
      options: { command: [process.execPath, '--input-type=module', '--eval', program(clocks)] },
      inputs: [{ s3: ['lines.txt'], splitBytes: taskBytes }],
    },
    {
      ...{ name: 'again', operator: 'exec', options: { command: ['cat'] } },
      inputs: [{ stage: 'pass', pattern: 'one-to-one' }],
    },
  ],
});

/** What a right clock tells beside the one that all processes of a machine share. */
const sinceStart = (): number => Date.now() - Number(process.hrtime.bigint() / 1_000_000n);

/** Runs the job where most clocks are off by so much, and holds what is told of it to the truth. */
async function skewed(seconds: number, ...options: readonly string[]) {
  const place = await Workplace.make();
  await writeFile(place.path('lines.txt'), text);
  const ran = await runExplained({
    place,
    job: jobOf(place.path('clocks')),
    options: ['--slots', '4', '--inject', `skew=0.9@${seconds},seed=4`, ...options],
  });
  const { report, explanation } = ran;
  expect([ran.exitCode, report.error]).toEqual([0, null]);
  expect((await place.parts('out')).equals(text)).toBe(true);

  // Clocks were off on both sides, in programs too.
  const { ahead = [], behind = [] } = report.injected?.places ?? {};
  expect(Math.min(ahead.length, behind.length)).toBeGreaterThan(0);
  const offMs = (await linesOf(place, 'clocks')).map((line) => Number(line) - sinceStart());
  expect(Math.max(...offMs)).toBeGreaterThan(seconds * 1_000 - slackMs);
  expect(Math.min(...offMs)).toBeLessThan(slackMs - seconds * 1_000);

  expect(report.attempts).toMatchObject({ launched: 2 * tasks, backups: 0, lost: 0 });
  expect(explanation.failures).toEqual([]);
  expect(explanation.slowNodes).toEqual([]);
  expect(otherActions(explanation)).toEqual([]);
  // Nothing took longer than the job, nor was before it or after it, by its one scheduler's clock.
  const wallMs = report.wallMs ?? 0;
  const told: ExplainedTask[] = explanation.stages.flatMap((stage) => stage.told);
  expect(told.length).toBeGreaterThan(1);
  for (const task of told) {
    expect(task.totalMs, JSON.stringify(task)).toBeLessThanOrEqual(wallMs + slackMs);
    for (const { ms = 0, kind } of task.causes)
      expect(ms, `${task.taskId} ${kind}`).toBeLessThanOrEqual(wallMs + slackMs);
  }
  const { out } = await place.run('attempts', report.jobId, '--json');
  const { attempts } = JSON.parse(out) as { readonly attempts: readonly AttemptRecord[] };
  expect(attempts).toHaveLength(2 * tasks);
  const [first = 0] = attempts.map(({ launchedAt }) => launchedAt).sort((a, b) => a - b);
  for (const { launchedAt, claimedAt = 0, endedAt = 0 } of attempts) {
    expect(claimedAt).toBeGreaterThanOrEqual(launchedAt - slackMs);
    expect(endedAt).toBeGreaterThanOrEqual(claimedAt);
    expect(endedAt).toBeLessThanOrEqual(first + wallMs + slackMs);
  }
  expect(explanation.path.map(({ kind }) => kind)).toContain('run');
  await place.expectNoProcesses();
  return ran;
}

/** Times that are told in whole seconds tell a clock's error no closer. */
const slackMs = 2_000;

describe('clocks of workers that are off', () => {
  it('by a minute and a half change nothing', () => skewed(90), 240_000);
  it('by two hours change nothing', () => skewed(7_200), 240_000);
  it('by ten minutes change nothing on Fargate', () => skewed(600, '--worker', 'fargate'), 240_000);
});
