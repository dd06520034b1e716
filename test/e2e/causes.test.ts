import { writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { type ExplainedAttempt, explanationSchema } from '../../src/contracts/explanation.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { coreutils } from '../support/coreutils.ts';
import { Workplace } from './command.ts';
import { type ExplainedRun, otherActions, runExplained } from './explained-run.ts';
import { noCopies } from './no-copies.ts';

const tasks = 4;
const text = Buffer.from(Array.from({ length: 4_000 }, (_, line) => `${(line * 7919) % 4_000}\n`).join(''));

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

describe('refused launches', () => {
  it('are made again at a slower pace: no task fails for them, and nothing is copied', async () => {
    const ran = await runExplained({
      place: await workplace(),
      job: waiting(0.5),
      options: ['--slots', '4', '--inject', 'throttle=0.6'],
    });
    await expectExact(ran);
    const { report, explanation } = ran;
    expect(report.injected?.throttled).toBeGreaterThan(0);
    expect(report.attempts).toMatchObject({ ...noCopies, lost: 0, launched: tasks });
    expect(report.stages.map(({ failed }) => failed)).toEqual([0]);
    expect(explanation.failures).toEqual([]);
    expect(otherActions(explanation)).toEqual([]);
  }, 180_000);
});

describe('slow reads', () => {
  it('are asked for a second time; no task fails or is lost for them, and nobody declines', async () => {
    const ran = await runExplained({
      place: await workplace(),
      job: waiting(0.5),
      options: ['--slots', '4', '--inject', 'slow-read=0.4@4'],
    });
    await expectExact(ran);
    const { report, explanation } = ran;
    expect(report.injected?.slowReads).toBeGreaterThan(0);
    expect(report.requests.hedgedReads).toBeGreaterThan(0);
    expect(report.attempts).toMatchObject({ lost: 0, declined: 0 });
    expect(explanation.failures).toEqual([]);
  }, 180_000);
});

describe('more input', () => {
  it('is launched first, and never copied, however long it takes', async () => {
    const place = await workplace();
    // Gzip of one member is read whole: of the last file's ranges the first holds six times what other files do, and three nothing.
    const line = `${'x'.repeat(63)}\n`;
    const [usual, more] = [256 * 1024, 6 * 256 * 1024];
    const sizes = [usual, usual, usual, usual, more];
    for (const [index, bytes] of sizes.entries())
      await writeFile(
        place.path(`input-${index}.gz`),
        gzipSync(line.repeat(bytes / line.length), { level: 0 }),
      );
    const program = `
      for await (const chunk of process.stdin)
        for (let at = 0; at < chunk.length; at += 4096) {
          process.stdout.write(chunk.subarray(at, at + 4096));
          await new Promise((resolve) => setTimeout(resolve, 15));
        }`;
    const ran = await runExplained({
      place,
      job: {
        name: 'uneven',
        stages: [
          {
            name: 'pass',
            operator: 'exec',
            options: { command: [process.execPath, '--input-type=module', '--eval', program] },
            inputs: [{ s3: ['input-*.gz'], splitBytes: Math.ceil(1.6 * usual) }],
          },
        ],
      },
      options: ['--slots', '3'],
    });
    const { exitCode, report, explanation } = ran;
    expect([exitCode, report.error]).toEqual([0, null]);
    expect((await place.parts('out')).toString()).toBe(line.repeat((4 * usual + more) / line.length));
    expect(report.attempts).toMatchObject({ lost: 0, declined: 0 });
    expect(explanation.actions.filter(({ of = '' }) => of.startsWith('pass/4/'))).toEqual([]);
    expect(explanation.slowNodes.flatMap(({ attempts }) => attempts)).not.toContain('pass/4/0');

    // It took long, and the reason that is told is its input.
    const told = explanation.stages[0]?.told.find(({ taskId }) => taskId === 'pass/4');
    expect(told?.causes.map(({ kind }) => kind)).toContain('more-input');
    expect(ran.text).toMatch(/pass\/4\/0 had more to read than its siblings/);
    const launches = await Promise.all(
      sizes.map(async (_, task) => (await attemptsBeside(ran, `pass/${task}/0`))[0]?.launchedAt ?? Infinity),
    );
    expect(launches[4]).toBe(Math.min(...launches));
  }, 180_000);
});

describe('what no retry can mend', () => {
  it('ends the job with the first attempt that meets a bad record, and names it', async () => {
    const place = await workplace();
    const rows = Array.from({ length: 4_000 }, (_, row) => `${row % 7},${row}\n`);
    rows[2_500] = '3,dear\n';
    const options = { key: ['key'], aggregates: [{ op: 'sum', column: 'amount', as: 'total' }] };
    await writeFile(place.path('rows.csv'), `key,amount\n${rows.join('')}`);
    const ran = await runExplained({
      place,
      job: {
        name: 'totals',
        stages: [
          {
            name: 'group',
            operator: 'groupby-map',
            options,
            inputs: [{ s3: ['rows.csv'], format: 'csv', splitBytes: 8_192 }],
            partitions: 1,
          },
          {
            ...{ name: 'reduce', operator: 'groupby-reduce', options },
            inputs: [{ stage: 'group', pattern: 'all-to-all' }],
          },
        ],
      },
      options: ['--slots', '4'],
    });
    const { exitCode, report, explanation } = ran;
    expect([exitCode, report.state]).toEqual([1, 'failed']);
    expect(report.error?.message).toMatch(/rows\.csv:2502: .*"dear"/);
    expect(explanation.failures).toMatchObject([{ cause: 'bad-record' }]);
    expect(await attemptsBeside(ran, explanation.failures[0]?.attemptId ?? '')).toHaveLength(1);
    expect(report.attempts).toMatchObject(noCopies);
    expect(otherActions(explanation, 'stop')).toEqual([]);
  }, 180_000);

  it('ends the job when its code has failed alike on two workers, and names what was read', async () => {
    const place = await workplace();
    await writeFile(place.path('marked.txt'), text.toString().replace('\n77\n', '\nboom\n'));
    const ran = await runExplained({
      place,
      job: {
        name: 'faulty',
        stages: [
          {
            name: 'check',
            operator: 'exec',
            options: { command: ['sh', '-c', '! grep -n boom >&2'] },
            inputs: [{ s3: ['marked.txt'], splitBytes: Math.ceil(text.length / tasks) }],
          },
        ],
      },
      options: ['--slots', '4'],
    });
    const { exitCode, report, explanation } = ran;
    expect([exitCode, report.state]).toEqual([1, 'failed']);
    expect(report.error?.message).toMatch(
      /failed alike twice: .*boom \(reading .*marked\.txt, bytes \d+ to \d+\)/,
    );
    expect(explanation.failures.map(({ cause }) => cause)).toEqual(['user-code', 'user-code']);
    const attempts = await attemptsBeside(ran, explanation.failures[0]?.attemptId ?? '');
    expect(endsOf(attempts)).toEqual(['failed', 'failed']);
    expect(new Set(attempts.map(({ node }) => node)).size).toBe(2);
    expect(report.attempts).toMatchObject(noCopies);
    expect(otherActions(explanation, 'retry', 'stop')).toEqual([]);
  }, 180_000);
});

describe('a fault of one node', () => {
  it('does not lose the job: its task is launched elsewhere, though that node is free and was used last', async () => {
    const place = await workplace();
    await writeFile(place.path('marked.txt'), text.toString().replace('\n77\n', '\nlast\n'));
    // The worker that has the marked task first fails it whenever it has it; it ends after all others.
    const bad = place.path('bad');
    const program = `
      if grep -q last; then
        sleep 1.5
        [ -e '${bad}' ] || echo $PPID >'${bad}'
        if [ "$(cat '${bad}')" = $PPID ]; then echo broken >&2; exit 3; fi
      fi
      echo ok`;
    const ran = await runExplained({
      place,
      job: {
        name: 'one-bad-node',
        stages: [
          {
            name: 'check',
            operator: 'exec',
            options: { command: ['sh', '-c', program] },
            inputs: [{ s3: ['marked.txt'], splitBytes: Math.ceil(text.length / tasks) }],
          },
        ],
      },
      options: ['--slots', '4'],
    });
    const { exitCode, report, explanation } = ran;
    expect([exitCode, report.error]).toEqual([0, null]);
    expect((await place.parts('out')).toString()).toBe('ok\n'.repeat(tasks));
    const [failed] = explanation.failures;
    expect(explanation.failures).toMatchObject([{ cause: 'user-code' }]);
    const attempts = await attemptsBeside(ran, failed?.attemptId ?? '');
    expect(endsOf(attempts).filter((end) => end !== 'lost')).toEqual(['failed', 'won']);
    expect(attempts.at(-1)?.node).not.toBe(attempts[0]?.node);
    expect(report.attempts).toMatchObject({ lost: 0, backups: 0 });
    expect(report.attempts.declined).toBeLessThanOrEqual(2);
    if (report.attempts.declined > 0) expect(ran.text).toContain('1 attempt of its task failed there');
  }, 180_000);
});
