import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng, type Rng } from '../../src/lib/rng.ts';
import { twoCopies } from '../support/cloned-jobs.ts';
import { expectNothingHeld } from '../support/nothing-left.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem, makeLogs } from '../support/embedded-system.ts';

const maps = 3;
const reduces = 2;
/** Longer than a test: who gets past it was not waiting for it. */
const foreverMs = 600_000;

/** A file for each map, its number before each line; sizes are equal, so that each is one task's. */
const rng = createRng('clone-faults');
const files = Array.from({ length: maps }, (_, file) =>
  Array.from({ length: 80 }, (_, line) => `f${file} ${String(rng.next()).padEnd(20, '0')} ${1000 + line}\n`)
    .map((text) => text.slice(-24))
    .map((text) => `f${file} ${text}`)
    .join(''),
);
const expected = coreutils('sort', [], Buffer.from(files.join('')));

let system: EmbeddedSystem;
let inputs: string[];
let marks: string;

beforeAll(async () => {
  marks = await mkdtemp(join(tmpdir(), 'outrider-marks-'));
  system = await EmbeddedSystem.start({
    slots: 16,
    parameters: {
      // A worker that is frozen must not be given up before its job has ended, on a busy machine either.
      [ParameterName.heartbeatMs]: '900',
      [ParameterName.tickMs]: '100',
      [ParameterName.leaseMs]: '1500',
      [ParameterName.claimLeaseMs]: '6000',
    },
  });
  inputs = await Promise.all(files.map((file, index) => system.put(`file-${index}`, Buffer.from(file))));
});

afterAll(async () => {
  await system.stop();
  await rm(marks, { recursive: true, force: true });
});

/** What each attempt of a first-stage task does: `straggle` is the first's to make its directory, until `gate` is there. */
const straggle =
  'if mkdir "$0-$OUTRIDER_TASK" 2>/dev/null; then until [ -e "$0-gate" ]; do sleep 0.05; done; fi;';
/** The first attempt of each task takes a second, and tells which process runs it. */
const telling =
  'if mkdir "$0-$OUTRIDER_TASK" 2>/dev/null; then echo $PPID > "$0-$OUTRIDER_TASK/pid"; sleep 1; fi;';
const lingering = 'sleep 0.4;';
/** Every attempt writes a mark of its own to the end of its lines: no two outputs of a task are the same. */
const marking = 'exec sed "s/\\$/ by$$-$(od -An -N4 -tu4 /dev/urandom | tr -d " ")/"';

/** Maps and reducers, each of them twice, whose clones wait for copies of their own for `waitMs`. */
const twice = (
  name: string,
  { first, second = 'cat', waitMs = foreverMs }: { first: string; second?: string; waitMs?: number },
  kind: 'lambda' | 'fargate' = 'lambda',
): JobSpecInput => ({
  name,
  policy: 'dolly',
  policyConfig: twoCopies({ assignment: 'delay', assignmentWaitMs: waitMs }),
  stages: [
    {
      name: 'first',
      operator: 'exec',
      options: { command: ['sh', '-c', first, join(marks, name)] },
      worker: { kind },
      inputs: [{ s3: inputs, splitBytes: files[0]?.length ?? 0 }],
      partitions: reduces,
    },
    {
      name: 'second',
      operator: 'exec',
      options: { command: ['sh', '-c', second] },
      worker: { kind },
      inputs: [{ stage: 'first', pattern: 'all-to-all' }],
    },
  ],
});

const withoutMarks = (output: Buffer): Buffer =>
  coreutils('sort', [], Buffer.from(output.toString().replaceAll(/ by\d+-\d+$/gm, '')));

/** For each file, the marks on its lines. */
const marksByFile = (output: Buffer): readonly number[] =>
  files.map((_, file) => {
    const lines = output.toString().split('\n');
    return new Set(lines.filter((line) => line.startsWith(`f${file} `)).map((line) => line.split(' ').at(-1)))
      .size;
  });

async function expectExactly(jobId: string): Promise<{ job: JobRecord; output: Buffer }> {
  const job = await system.ended(jobId);
  expect(job.error).toBeUndefined();
  const output = await system.output(job);
  expect(withoutMarks(output).equals(expected)).toBe(true);
  await expectNothingHeld(system, 20_000);
  return { job, output };
}

/** Kills up to `most` workers, one after another at times and in an order that a seed draws. */
async function killWorkers(jobId: string, most: number, luck: Rng): Promise<number> {
  const killed = new Set<number>();
  while (killed.size < most) {
    const victims = await system.until('a victim, or the end', async () => {
      const { endedAt } = await system.api.job(jobId);
      const there = system.processes('worker').filter(({ pid }) => !killed.has(pid));
      if (endedAt !== undefined) return [];
      return there.length > 0 && luck.next() < 0.4 ? there : undefined;
    });
    const victim = victims[Math.floor(luck.next() * victims.length)];
    if (victim === undefined) break;
    killed.add(victim.pid);
    process.kill(victim.pid, 'SIGKILL');
  }
  return killed.size;
}

describe('a job whose clones wait for copies of their own', () => {
  /** Submits a job whose first copies of maps hang, and resolves once its reducers' clones wait for these. */
  async function waiting(name: string): Promise<string> {
    const jobId = await system.submit(twice(name, { first: `${straggle} cat`, second: 'sleep 1.5; cat' }));
    await system.until('reducers at work', async () => {
      const { attempts } = await system.api.attempts(jobId);
      return attempts.some(({ attemptId, state }) => attemptId.startsWith('second/') && state === 'running')
        ? true
        : undefined;
    });
    return jobId;
  }

  it('clones the same tasks once, though its scheduler dies again and again in the middle of the wait', async () => {
    const jobId = await waiting('dying');
    const killed = new Set<number>();
    while (killed.size < 2) {
      const [victim] = await system.until('a scheduler at work', () => {
        const found = system.processes('schedule').filter(({ pid }) => !killed.has(pid));
        return found.length > 0 ? found : undefined;
      });
      if (victim === undefined) break;
      killed.add(victim.pid);
      process.kill(victim.pid, 'SIGKILL');
    }
    // The hanging copies come now, and clones of the reducers with them, unless these are through by then.
    await mkdir(join(marks, 'dying-gate'));
    const { job } = await expectExactly(jobId);
    expect(job.attempts).toMatchObject({ backups: 0, lost: 0 });
    expect(job.attempts.clones).toBeGreaterThanOrEqual(maps);
    expect(job.attempts.clones).toBeLessThanOrEqual(maps + reduces);
    const cloned = (await system.decisions(jobId)).flatMap((each) =>
      each.kind === 'clone-stage' ? [each.stage] : [],
    );
    expect(new Set(cloned)).toEqual(new Set([0, 1]));
  });

  it('ends at once where it is cancelled in the wait, and leaves nothing', async () => {
    const jobId = await waiting('cancelled');
    await system.api.cancel(jobId);
    expect(await system.ended(jobId)).toMatchObject({ state: 'cancelled', parts: [] });
    await expectNothingHeld(system, 20_000);
  });
});

describe('a cloned job whose attempts never write the same twice', () => {
  it.each(['lambda', 'fargate'] as const)(
    'reads one copy of each output, whichever %s workers die',
    async (kind) => {
      const waitMs = 1_500;
      const spec = twice(
        `marked-${kind}`,
        { first: `${lingering} ${marking}`, second: `${lingering} cat`, waitMs },
        kind,
      );
      const jobId = await system.submit(spec);
      const killed = await killWorkers(jobId, 2, createRng(`kill ${kind}`));
      const { output } = await expectExactly(jobId);
      expect(killed).toBeGreaterThan(0);
      expect(marksByFile(output)).toEqual(files.map(() => 1));
      // A clone that was sent to a copy that differs would find its checksum wrong.
      const { attempts } = await system.outcomes(jobId);
      expect(attempts.flatMap(({ failure }) => failure ?? [])).toEqual([]);
    },
  );
});

describe('a cloned job one of whose workers is frozen', () => {
  it('ends without it and though Finish dies as it waits, and nothing is left once it has thawed', async () => {
    const jobId = await system.submit(twice('frozen', { first: `${telling} cat`, waitMs: 0 }));
    const pid = await system.until('a copy at work', () =>
      readFile(join(marks, 'frozen-0', 'pid'), 'utf8').then(
        (text) => (text.endsWith('\n') ? Number(text) : undefined),
        () => undefined,
      ),
    );
    process.kill(pid, 'SIGSTOP');
    const job = await system.ended(jobId);
    expect(job.error).toBeUndefined();
    expect(job.attempts).toMatchObject({ lost: 0, cancelled: expect.any(Number) });
    const finish = system.processes('finish').map((each) => each.pid);
    expect(finish.length).toBeGreaterThan(0);
    for (const each of finish) process.kill(each, 'SIGKILL');
    // It comes again, and does not wait for ever.
    await expectNothingHeld(system, 20_000);
    process.kill(pid, 'SIGCONT');
    await system.until('the end of the copy that has thawed', async () => {
      const { lines } = await makeLogs(system.stack).read(job.jobId, { since: job.createdAt, limit: 1_000 });
      const ended = lines.filter(({ text }) => text.includes('attempt-ended'));
      return ended.filter(({ text }) => /first\/0\/\d/.test(text)).length >= 2 ? true : undefined;
    });
    await expectExactly(jobId);
  });
});
