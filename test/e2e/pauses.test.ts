import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import {
  type ExplainedAttempt,
  type ExplainedTask,
  explanationSchema,
} from '../../src/contracts/explanation.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { Workplace } from './command.ts';
import { otherActions, runExplained } from './explained-run.ts';

const tasks = 16;
const taskBytes = 160 * 1024;
const text = Buffer.from(
  Array.from({ length: (tasks * taskBytes) / 64 }, (_, line) => `${String(line).padStart(63)}\n`).join(''),
);

/** Passes its input on bit by bit: most of two seconds for each task, without much work. */
const program = `
  for await (const chunk of process.stdin)
    for (let at = 0; at < chunk.length; at += 4096) {
      process.stdout.write(chunk.subarray(at, at + 4096));
      await new Promise((resolve) => setTimeout(resolve, 40));
    }`;

const unhurried = (policy: 'outrider' | 'none'): JobSpecInput => ({
  name: 'unhurried',
  policy,
  stages: [
    {
      name: 'pass',
      operator: 'exec',
      options: { command: [process.execPath, '--input-type=module', '--eval', program] },
      inputs: [{ s3: ['lines.txt'], splitBytes: taskBytes }],
    },
  ],
});

async function paused(policy: 'outrider' | 'none', inject: string) {
  const place = await Workplace.make();
  await writeFile(place.path('lines.txt'), text);
  const ran = await runExplained({
    place,
    job: unhurried(policy),
    options: ['--slots', '4', '--inject', inject],
  });
  expect([ran.exitCode, ran.report.error]).toEqual([0, null]);
  expect((await place.parts('out')).equals(text)).toBe(true);
  const told: ExplainedTask[] = [];
  for (let task = 0; task < tasks; task++) {
    const { out } = await place.run('explain', ran.report.jobId, `pass/${task}`, '--json');
    told.push(...(explanationSchema.parse(JSON.parse(out)).stages[0]?.told ?? []));
  }
  await place.expectNoProcesses();
  return { ...ran, told, frozen: ran.report.injected?.places.paused ?? [] };
}

/** Of attempts, those that ran where workers stood still. */
const onFrozen = (frozen: readonly string[], attempts: readonly ExplainedAttempt[]) =>
  attempts.filter(({ node = '' }) => frozen.some((place) => node.endsWith(place)));

describe('workers that stand still for a while, and go on', () => {
  it('are overtaken by copies where these pay, and harm nothing when they wake', async () => {
    const { report, explanation, frozen, told } = await paused('outrider', 'pause=0.2@6,seed=3');
    expect(frozen.length).toBeGreaterThan(0);
    expect(report.injected).toMatchObject({ paused: frozen.length, slow: 0, killed: 0 });
    expect(report.attempts.backups).toBeGreaterThan(0);
    expect(report.attempts.lost).toBe(0);
    expect(explanation.failures).toEqual([]);
    // Whatever was copied had stood still, and one attempt of each task has won, and no other counts.
    const copied = told.filter(({ attempts }) => attempts.some(({ reason }) => reason === 'backup'));
    for (const { taskId, attempts } of copied) expect(onFrozen(frozen, attempts), taskId).not.toEqual([]);
    expect(told.map(({ attempts }) => attempts.filter(({ end }) => end === 'won').length)).toEqual(
      Array.from({ length: tasks }, () => 1),
    );
    // Where a copy has won, its task is told as slow, for the attempt that stood still. One that had come in the place of a declined
    // launch may have won, though it stood still.
    for (const task of copied) {
      const { straggler, causes, winner, attempts } = task;
      if (attempts.find(({ attemptId }) => attemptId === winner)?.reason !== 'backup') continue;
      const words = JSON.stringify(task);
      expect(straggler, words).toBe(true);
      expect(
        causes.map(({ kind }) => kind),
        words,
      ).toContain('copied');
    }
  }, 180_000);

  it('are told of as such, and of nothing else, with how long they did so', async () => {
    const { explanation, frozen, told } = await paused('none', 'pause=0.2@4,seed=3');
    expect(frozen.length).toBeGreaterThan(0);
    const causes = told.flatMap((task) => task.causes.filter(({ kind }) => kind === 'stood-still'));
    // A worker that stands still while it sends a report takes that for the answer's time: seldom more than one of these.
    expect(causes.length).toBeGreaterThanOrEqual(frozen.length - 1);
    expect(causes.length).toBeGreaterThan(0);
    for (const { node = '', facts } of causes) {
      expect(frozen.some((place) => node.endsWith(place))).toBe(true);
      expect(facts['stalledMs']).toBeGreaterThan(3_000);
    }
    expect(explanation.slowNodes).toEqual([]);
    expect(explanation.failures).toEqual([]);
  }, 180_000);

  it('are given up as silent where they do so for long, each once, and what they bring late is refused', async () => {
    const { report, explanation, frozen, told, text: words } = await paused('none', 'pause=0.2@12,seed=3');
    expect(frozen.length).toBeGreaterThan(0);
    const lost = told.flatMap(({ attempts }) => attempts.filter(({ end }) => end === 'lost'));
    expect(lost.map(({ node = '' }) => node.slice(-32)).sort()).toEqual([...frozen].sort());
    expect(explanation.failures.map(({ attemptId }) => attemptId).sort()).toEqual(
      lost.map(({ attemptId }) => attemptId).sort(),
    );
    for (const { attemptId } of lost) expect(words).toContain(`${attemptId}: silent`);
    expect(report.attempts).toMatchObject({
      lost: frozen.length,
      backups: 0,
      launched: tasks + frozen.length,
    });
    expect(otherActions(explanation, 'retry', 'give-up')).toEqual([]);
    for (const { attempts } of told)
      expect(attempts.map(({ end }) => end).filter((end) => end !== 'lost')).toEqual(['won']);
  }, 180_000);
});
