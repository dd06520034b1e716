import { access, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { attemptDataKey } from '../../src/contracts/keys.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng } from '../../src/lib/rng.ts';
import { type BatchTimes, type PairTimes, renderBatch, summaryOf } from '../support/clone-batch.ts';
import { twoCopies } from '../support/cloned-jobs.ts';
import { expectNothingHeld } from '../support/nothing-left.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

/** Whether the table is asked for: a measurement, for which the machine has to be quiet. */
const isMeasured = process.env['OUTRIDER_CLONE_TABLE'] !== undefined;
/** Pairs of runs; twenty where it is a measurement. The bounds below are scaled. */
const pairs = Number(process.env['OUTRIDER_CLONE_PAIRS'] ?? (isMeasured ? '20' : '10'));
/** Of the pairs, how many may be spoilt by what else the machine does. */
const spoilt = Math.floor(pairs / 10);
/** Runs without a straggler, between the pairs so that all meet the same load. */
const pairsPerControl = 3;
/** Between the mean gain and the expected one, when it is measured: ten points, of the fifty or so that there are. */
const band = 0.1;

const taskS = 0.4;
/** Long beside all else that a job takes, on a busy machine too, unless it is a measurement. */
const slowness = isMeasured ? 8 : 16;
/** For a job with clones beside one without. */
const slots = 32;
const reportMs = 300;
const tickMs = 100;
const maps = 6;
const reduces = 2;

const rng = createRng('lines');
const text = Buffer.from(
  Array.from({ length: 600 }, (_, line) => `${rng.next().toString(36)} line ${line}\n`).join(''),
);
const expected = coreutils('sort', [], text);

type StageName = 'first' | 'second';
type Policy = 'dolly' | 'none';

let system: EmbeddedSystem;
let input: string;
let marks: string;

beforeAll(async () => {
  marks = await mkdtemp(join(tmpdir(), 'outrider-marks-'));
  system = await EmbeddedSystem.start({
    slots,
    parameters: {
      [ParameterName.heartbeatMs]: String(reportMs),
      [ParameterName.tickMs]: String(tickMs),
    },
  });
  input = await system.put('lines', text);
});

afterAll(async () => {
  await system.stop();
  await rm(marks, { recursive: true, force: true });
});

/** Takes a task's time; but whoever is first to make the directory is the straggler, and tells when it is through. */
const program = `
  if mkdir "$0" 2>/dev/null; then sleep ${taskS * slowness} && mkdir "$0/over"; else sleep ${taskS}; fi
  cat`;

/**
 * Six maps and two reducers that take `taskS` each, but for one attempt of the stage `slow`.
 *
 * The program itself is slow, not the worker by `--inject slow=8x1`: that slows one process for good, so only the
 * first job of a stack would meet it, or meet it twice (Lambda takes the process used last for the second stage); a
 * stack of its own for each run would measure how fast two cores start sixteen processes.
 */
const job = (name: string, policy: Policy, slow?: StageName, budgetShare = 1): JobSpecInput => {
  const command = (stage: StageName): string[] => [
    'sh',
    '-c',
    program,
    join(marks, stage === slow ? name : 'nobody'),
  ];
  return {
    name,
    policy,
    policyConfig: twoCopies({ budgetShare }),
    stages: [
      {
        name: 'first',
        operator: 'exec',
        options: { command: command('first') },
        inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / maps) }],
        partitions: reduces,
      },
      {
        name: 'second',
        operator: 'exec',
        options: { command: command('second') },
        inputs: [{ stage: 'first', pattern: 'all-to-all' }],
      },
    ],
  };
};

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

interface Run {
  /** Waits for the end, and checks all but time. Returns how long the job took, from its acceptance to its end. */
  ended(): Promise<number>;
  /** Resolves when all tasks of the straggler's stage are done but the straggler's. */
  waitsForStraggler(): Promise<void>;
}

async function start(name: string, policy: Policy, slow?: StageName): Promise<Run> {
  const jobId = await system.submit(job(name, policy, slow));
  return {
    async ended() {
      const record = await system.ended(jobId);
      expect(record.error).toBeUndefined();
      const { attempts } = record;
      expect(attempts).toMatchObject({ launched: maps + reduces + attempts.clones, backups: 0, lost: 0 });
      // Those of the second stage await copies of their own; what they are to clone may be done by then. The first
      // job of all finds out how many launches there is room for, and has clones only as it does.
      const least = name.endsWith('-warm') ? 1 : maps;
      expect(attempts.clones).toBeGreaterThanOrEqual(policy === 'dolly' ? least : 0);
      expect(attempts.clones).toBeLessThanOrEqual(policy === 'dolly' ? maps + reduces : 0);
      expect(coreutils('sort', [], await system.output(record)).equals(expected)).toBe(true);
      if (slow !== undefined) expect(await exists(join(marks, name))).toBe(true);
      if (slow !== undefined && policy === 'none') expect(await exists(join(marks, name, 'over'))).toBe(true);
      return (record.endedAt ?? Number.NaN) - record.createdAt;
    },
    async waitsForStraggler() {
      const tasks = slow === 'first' ? maps : reduces;
      await system.until(`the straggler of ${jobId} alone`, async () => {
        const { stages, endedAt } = await system.api.job(jobId);
        const done = stages.find(({ name: stage }) => stage === slow)?.done ?? 0;
        return done >= tasks - 1 || endedAt !== undefined || undefined;
      });
    },
  };
}

/** One run without a straggler. */
async function control(name: string, policy: Policy): Promise<number> {
  const ms = await (await start(name, policy)).ended();
  await expectNothingHeld(system, 15_000);
  return ms;
}

/**
 * One run without clones and one with them. The second begins when the first does nothing but wait for its
 * straggler, so neither takes the cores from the other.
 */
async function pair(name: string, slow: StageName): Promise<PairTimes> {
  const without = await start(`plain-${name}`, 'none', slow);
  await without.waitsForStraggler();
  const withMs = await (await start(`cloned-${name}`, 'dolly', slow)).ended();
  const isAwaited = await exists(join(marks, `cloned-${name}`, 'over'));
  const withoutMs = await without.ended();
  await expectNothingHeld(system, 15_000);
  return { slow, withoutMs, withMs, isAwaited };
}

async function batch(): Promise<BatchTimes> {
  await mkdir(join(marks, 'nobody'));
  // Starts the processes: what runs after it finds them warm.
  await pair('warm', 'first');
  const times: BatchTimes = {
    addedMs: (slowness - 1) * taskS * 1_000,
    // A tick tells the straggler that it is not needed any more, and its next report brings it the word.
    pairs: [],
    plainMs: [],
    clonedMs: [],
  };
  for (let index = 0; index < pairs; index++) {
    if (index % pairsPerControl === 0) {
      times.plainMs.push(await control(`plain-control-${index}`, 'none'));
      times.clonedMs.push(await control(`cloned-control-${index}`, 'dolly'));
    }
    times.pairs.push(await pair(String(index), index % 2 === 0 ? 'first' : 'second'));
  }
  return times;
}

describe('two-stage jobs of eight tasks with one straggler', () => {
  it(
    'gain by clones what the straggler costs, with exactly the right lines, and hold nothing in the end',
    async () => {
      const times = await batch();
      // Which of two came first, and no length of time, whatever else the machine does.
      const unawaited = times.pairs.filter(({ isAwaited }) => !isAwaited);
      expect(unawaited.length).toBeGreaterThanOrEqual(pairs - spoilt);
      if (!isMeasured) return;
      console.log(renderBatch(times).join('\n'));
      const { meanGain, expectedGain } = summaryOf(times);
      const sooner = times.pairs.filter(({ withMs, withoutMs }) => withMs < withoutMs);
      expect(sooner.length).toBeGreaterThanOrEqual(pairs - spoilt);
      expect(Math.abs(meanGain - expectedGain)).toBeLessThan(band);
    },
    pairs * 60_000,
  );
});

describe('the decision log of a job', () => {
  /** p, n and c of the two stages: c is at least log(1 − 0.95^(1/n)) / log 0.1, of which the job admits 2. */
  const phases = [
    { stragglerProbability: 0.1, tasks: maps, copiesWanted: 3, copies: 2, totalSlots: slots },
    { stragglerProbability: 0.1, tasks: reduces, copiesWanted: 2, copies: 2, totalSlots: slots },
  ];

  it('tells p, n, c, U and the budget in use of each stage that is cloned', async () => {
    const jobId = await system.submit(job('admitted', 'dolly'));
    await system.ended(jobId);
    const cloned = (await system.decisions(jobId)).filter(({ kind }) => kind === 'clone-stage');
    expect(cloned).toMatchObject([
      { stage: 0, copies: 2, facts: { ...phases[0], chargedSlots: 12, usedSlots: 0, cloneSlots: 0 } },
      // Copies of the first stage may still be on their way out.
      { stage: 1, facts: { ...phases[1], chargedSlots: 4, usedSlots: 0, cloneSlots: expect.any(Number) } },
    ]);
    await expectNothingHeld(system, 15_000);
  });

  it('tells the same, and the reason, of one that is not, and the job runs without clones', async () => {
    // A twentieth of the slots is less than two.
    const jobId = await system.submit(job('refused', 'dolly', undefined, 0.05));
    const record = await system.ended(jobId);
    expect(coreutils('sort', [], await system.output(record)).equals(expected)).toBe(true);
    expect(record.attempts).toMatchObject({ launched: maps + reduces, clones: 0 });
    const decided = await system.decisions(jobId);
    expect(decided.filter(({ kind }) => kind === 'clone-stage')).toEqual([]);
    const refusals = decided.filter((each) => each.kind === 'refuse' && each.reason === 'clone-budget');
    // No stage has more copies than one that it reads, so none is asked for the second.
    expect(refusals).toMatchObject([
      { taskId: 'first/0', facts: { ...phases[0], chargedSlots: 0, usedSlots: 0, cloneSlots: 0 } },
    ]);
    await expectNothingHeld(system, 15_000);
  });
});

/** Two maps, the second held back until the test lets it go, and two reducers; each of them twice. */
const gated = (name: string): JobSpecInput => ({
  name,
  policy: 'dolly',
  policyConfig: twoCopies({ assignment: 'delay', assignmentWaitMs: 2_000 }),
  stages: [
    {
      name: 'first',
      operator: 'exec',
      options: {
        command: [
          'sh',
          '-c',
          'if [ "$OUTRIDER_TASK" = 1 ]; then until [ -e "$0" ]; do sleep 0.05; done; fi; cat',
          join(marks, name),
        ],
      },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / 2) }],
      partitions: reduces,
    },
    {
      name: 'second',
      operator: 'exec',
      options: { command: ['cat'] },
      inputs: [{ stage: 'first', pattern: 'all-to-all' }],
    },
  ],
});

describe('a job whose output of a task is gone before it is read', () => {
  it('reads the replica that the task that lost has left, and gives exactly the right lines', async () => {
    const jobId = await system.submit(gated('gone'));
    const winner = await system.until('a winner and a replica of the first task', async () => {
      const { results, replicas } = await system.outcomes(jobId);
      const [won] = results.filter(({ taskId }) => taskId === 'first/0');
      return replicas.some(({ taskId }) => taskId === 'first/0') ? won : undefined;
    });
    const running = await system.api.job(jobId);
    await system.objects.remove(system.bucket, [attemptDataKey(running.jobId, winner.attemptId)]);
    await mkdir(join(marks, 'gone'));

    const record = await system.ended(jobId);
    expect(record.error).toBeUndefined();
    expect(coreutils('sort', [], await system.output(record)).equals(expected)).toBe(true);
    const { attempts } = await system.outcomes(jobId);
    const failures = attempts.flatMap(({ failure }) => failure ?? []);
    expect(failures.length).toBeGreaterThan(0);
    expect(failures.filter(({ cause }) => cause !== 'input-lost')).toEqual([]);
    // The replica is read, so nothing is made again.
    expect(record.attempts.recomputed).toBe(0);
    expect(attempts.filter(({ attemptId }) => attemptId.startsWith('first/0/'))).toHaveLength(2);
    await expectNothingHeld(system, 15_000);
  });
});
