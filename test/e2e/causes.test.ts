import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type ExplainedAttempt, explanationSchema } from '../../src/contracts/explanation.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { coreutils } from '../support/coreutils.ts';
import { Workplace } from './command.ts';
import { type ExplainedRun, otherActions, runExplained } from './explained-run.ts';

const tasks = 4;
const text = Buffer.from(Array.from({ length: 4_000 }, (_, line) => `${(line * 7919) % 4_000}\n`).join(''));

/** Copies of attempts, and launches that were declined: wrong wherever no node is slow. */
const noCopies = { backups: 0, restarts: 0, clones: 0, declined: 0 };

/** Tasks that take a while without work, so that a busy machine makes none of them slow. */
const waiting = (seconds: number): JobSpecInput => ({
  name: 'waiting',
  stages: [
    {
      name: 'wait',
      operator: 'exec',
      options: { command: ['sh', '-c', `sleep ${seconds}; cat`] },
      inputs: [{ s3: ['lines.txt'], splitBytes: Math.ceil(text.length / tasks) }],
    },
  ],
});

async function workplace(): Promise<Workplace> {
  const place = await Workplace.make();
  await writeFile(place.path('lines.txt'), text);
  return place;
}

async function expectExact({ place, exitCode, report }: ExplainedRun): Promise<void> {
  expect([exitCode, report.error]).toEqual([0, null]);
  expect(coreutils('sort', [], await place.parts('out')).equals(coreutils('sort', [], text))).toBe(true);
}

/** The attempts of the task of an attempt, in order. */
async function attemptsBeside({ place, report }: ExplainedRun, attemptId: string) {
  const task = attemptId.slice(0, attemptId.lastIndexOf('/'));
  const told = await place.run('explain', report.jobId, task, '--json');
  const { stages } = explanationSchema.parse(JSON.parse(told.out));
  return stages[0]?.told[0]?.attempts ?? [];
}

const endsOf = (attempts: readonly ExplainedAttempt[]): readonly string[] => attempts.map(({ end }) => end);

describe('want of memory', () => {
  it('sends the task to the next size, once; no node is blamed, and nothing is copied', async () => {
    const ran = await runExplained({
      place: await workplace(),
      job: waiting(1.5),
      options: ['--slots', '4', '--inject', 'memory-hog=1'],
    });
    await expectExact(ran);
    const { report, explanation, place } = ran;
    const [hog = '?'] = report.injected?.places.memoryHogs ?? [];
    expect(report.injected).toMatchObject({ memoryHogs: 1, killed: 0 });

    expect(explanation.failures).toMatchObject([{ cause: 'out-of-memory' }]);
    const [{ attemptId } = { attemptId: '' }] = explanation.failures;
    const attempts = await attemptsBeside(ran, attemptId);
    expect(endsOf(attempts)).toEqual(['lost', 'won']);
    // It was perhaps ended before it took the attempt up.
    if (attempts[0]?.node !== undefined) expect(attempts[0].node.endsWith(hog)).toBe(true);
    expect(attempts[1]?.node).toMatch(/Workerlarge/);
    const logs = await place.run('logs', report.jobId, '--task', attemptId);
    expect(logs.out).toContain('out-of-memory');

    expect(report.attempts).toMatchObject({ ...noCopies, lost: 1, launched: tasks + 1 });
    expect(otherActions(explanation, 'retry')).toEqual([]);
    expect(explanation.slowNodes.filter(({ node }) => node.endsWith(hog))).toEqual([]);
  }, 180_000);
});
