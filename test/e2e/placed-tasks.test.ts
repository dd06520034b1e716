import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeFile } from 'node:fs/promises';
import { writeConnection } from '../../src/cli/connection.ts';
import { type AttemptId, taskOf } from '../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { readLogLine, renderLogEvent } from '../../src/report/log-lines.ts';
import { makeStyle } from '../../src/report/style.ts';
import { parseInjection } from '../../src/local/inject/injection.ts';
import { createRng } from '../../src/lib/rng.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem, makeLogs } from '../support/embedded-system.ts';
import { Workplace } from './command.ts';
import { expectSameReplay, runExplained } from './explained-run.ts';

const parameters = { [ParameterName.heartbeatMs]: '300', [ParameterName.tickMs]: '100' };
const reducers = 4;
const lines = 20_000;
const rng = createRng('placed tasks');
const text = Buffer.from(
  Array.from({ length: lines }, (_, line) => `${rng.next().toString(36)} ${String(line)}\n`).join(''),
);
const sorted = coreutils('sort', [], text);
const worker = { kind: 'fargate' } as const;

/** One task reads all, and leaves it to four. */
const jobOf = (input: string, policy: 'mantri' | 'outrider' | 'none'): JobSpecInput => ({
  name: 'placed',
  policy,
  storage: 'worker-local',
  stages: [
    {
      ...{ name: 'pass', operator: 'exec', worker, options: { command: ['cat'] } },
      inputs: [{ s3: [input], splitBytes: 2 * text.length }],
      partitions: reducers,
    },
    {
      ...{ name: 'again', operator: 'exec', worker, options: { command: ['cat'] } },
      inputs: [{ stage: 'pass', pattern: 'all-to-all' }],
    },
  ],
});

describe('the reduce tasks of a job on Fargate whose map task keeps its output', () => {
  let system: EmbeddedSystem;
  let input: string;

  beforeAll(async () => {
    system = await EmbeddedSystem.start({ slots: 8, parameters });
    input = await system.put('lines', text);
  }, 400_000);

  afterAll(() => system.stop());

  /** Runs the job, and tells the zones of its attempts and what its log says of placement. */
  async function runUnder(
    policy: 'mantri' | 'outrider' | 'none',
    storage: JobSpecInput['storage'] = 'worker-local',
  ) {
    const job = await system.ended(await system.submit({ ...jobOf(input, policy), storage }));
    expect(job.error).toBeUndefined();
    expect(coreutils('sort', [], await system.output(job)).equals(sorted)).toBe(true);
    const { attempts } = await system.outcomes(job.jobId);
    const zonesOf = (stage: string): string[] =>
      attempts.flatMap(({ attemptId, zone }) => (attemptId.startsWith(`${stage}/`) ? [zone ?? '?'] : []));
    const { lines: log } = await makeLogs(system.stack).read(job.jobId, {
      since: job.createdAt,
      limit: 1_000,
    });
    const placed = log.map(readLogLine).filter(({ event }) => event === 'stage-placed');
    return { map: zonesOf('pass'), reduce: zonesOf('again'), placed };
  }

  it.each(['mantri', 'outrider'] as const)(
    'all run in its zone under %s, and the log says so',
    async (policy) => {
      const { map, reduce, placed } = await runUnder(policy);
      const [zone = ''] = map;
      expect(map).toHaveLength(1);
      expect(reduce).toEqual([zone, zone, zone, zone]);
      expect(placed).toMatchObject([
        {
          about: 'again',
          // Two zones: of all bytes, one for the length of each line among them, half would cross.
          facts: {
            zones: `4 ${zone}`,
            crossingBytes: 0,
            spreadBytes: (text.length + lines) / 2,
            slowestLinkBytes: 0,
          },
        },
      ]);
      const [line] = placed;
      expect(line && renderLogEvent(line, makeStyle({ isTty: false, env: {} }))).toContain(
        `again stage placed  zones 4 ${zone}`,
      );
    },
  );

  it('are spread over the zones under none', async () => {
    const { reduce, placed } = await runUnder('none');
    expect(new Set(reduce).size).toBe(2);
    expect(placed).toEqual([]);
  });

  it('are spread where intermediate data is in storage without zones, and nothing is said', async () => {
    const { reduce, placed } = await runUnder('mantri', 'standard');
    expect(new Set(reduce).size).toBe(2);
    expect(placed).toEqual([]);
  });
});

/** Passes its input on bit by bit, with short pauses: a few seconds for each task, and much longer where it is slowed. */
const unhurried = `
  for await (const chunk of process.stdin)
    for (let at = 0; at < chunk.length; at += 4096) {
      process.stdout.write(chunk.subarray(at, at + 4096));
      await new Promise((resolve) => setTimeout(resolve, 8));
    }`;
const tasks = 8;
const taskBytes = 1024 * 1024;
/** By its name, as a person gives it; the zone where copies go by the id that the log has. */
const slowZone = 'us-east-1a';
const [slowZoneId, otherZoneId] = ['use1-az1', 'use1-az2'];
const whole = Buffer.alloc(tasks * taskBytes, text);
/** Tasks of a job that others are to hear from: half of them begin in either zone, and four machines must tell of one. */
const spread = 12;
/** Two copies may start before any task is done, most others when tasks are done where all is well: then the zones differ. */
const spreadSlots = spread + 2;

/** Tasks that read as much each, of which those in one zone are to be slow. */
const unhurriedJob = (input: string, policy: 'mantri' | 'outrider'): JobSpecInput => ({
  name: 'slow-zone',
  policy,
  stages: [
    {
      ...{ name: 'work', operator: 'exec', worker },
      options: { command: [process.execPath, '--input-type=module', '--eval', unhurried] },
      inputs: [{ s3: [input], splitBytes: taskBytes }],
    },
  ],
});

/** The next job knows of the zone by the one before: none of its tasks begins there, its log says by whom it knows, and a replay knows it, too. */
async function expectNextKeepsOut(system: EmbeddedSystem, spec: JobSpecInput): Promise<void> {
  const next = await system.ended(await system.submit(spec));
  expect(next.error).toBeUndefined();
  const { attempts } = await system.outcomes(next.jobId);
  expect(new Set(attempts.flatMap(({ zone }) => zone ?? []))).toEqual(new Set([otherZoneId]));
  const { lines: log } = await makeLogs(system.stack).read(next.jobId, {
    since: next.createdAt,
    limit: 1_000,
  });
  const launched = log
    .map(readLogLine)
    .filter(({ event, facts }) => event === 'launched' && facts['reason'] === 'first');
  expect(launched).toHaveLength(spread);
  for (const { facts } of launched) {
    expect(facts).toMatchObject({ zone: otherZoneId });
    expect(Number(facts['zoneSamplesOfOthers'])).toBeGreaterThanOrEqual(spread / 2);
  }
  await writeConnection(system.dir, system.stack);
  await expectSameReplay(await Workplace.make(), next.jobId, '--state-dir', system.dir);
}

describe.each(['mantri', 'outrider'] as const)('a zone whose tasks are slow, under %s', (policy) => {
  it('gets no copies of its own tasks: they run in another, as the log says, and the output is exact', async () => {
    const injection = parseInjection(`slow-zone=${slowZone}@10`);
    const system = await EmbeddedSystem.start({ slots: spreadSlots, parameters, injection });
    try {
      const all = Buffer.alloc(spread * taskBytes, text);
      const spec = unhurriedJob(await system.put('whole', all), policy);
      const job = await system.ended(await system.submit(spec));
      expect(job.error).toBeUndefined();
      expect((await system.output(job)).equals(all)).toBe(true);
      expect(system.stack.injected()).toMatchObject({ slowTaskZone: slowZone });
      const { attempts } = await system.outcomes(job.jobId);
      const firstIn = new Map(
        attempts.flatMap(({ attemptId, zone }) =>
          attemptId.endsWith('/0') ? [[taskOf(attemptId), zone] as const] : [],
        ),
      );
      expect([...firstIn.values()]).toContain(slowZoneId);
      const { lines: log } = await makeLogs(system.stack).read(job.jobId, {
        since: job.createdAt,
        limit: 1_000,
      });
      const backups = log
        .map(readLogLine)
        .filter(({ event, facts }) => event === 'launched' && facts['reason'] === 'backup');
      // The first copy of each: beside two that run, a third might go anywhere as long as zones look alike.
      const ofSlow = backups.filter(
        ({ about = '' }) => about.endsWith('/1') && firstIn.get(taskOf(about as AttemptId)) === slowZoneId,
      );
      expect(ofSlow.length).toBeGreaterThan(0);
      for (const { about, facts } of ofSlow) {
        // On a busy machine all may start before a task is done, when the factor is still 1 everywhere.
        expect(facts).toMatchObject({ zone: otherZoneId, locationFactor: expect.any(Number) });
        // One that was told to stop before it began has no zone.
        const attempt = attempts.find(({ attemptId }) => attemptId === about);
        if (attempt?.zone !== undefined) expect(attempt.zone).toBe(otherZoneId);
      }
      await expectNextKeepsOut(system, spec);
    } finally {
      await system.stop();
    }
  }, 400_000);
});

/** Runs the unhurried job over `content` on so many slots, beside a slow zone: it succeeds and puts out what it read. */
async function runBesideSlowZone(content: Buffer, slots: number) {
  const at = await Workplace.make();
  await writeFile(at.path('content'), content);
  const { exitCode, report, explanation, text } = await runExplained({
    ...{ place: at, job: unhurriedJob('content', 'outrider') },
    options: ['--slots', String(slots), '--inject', `slow-zone=${slowZone}@10`],
  });
  expect([exitCode, report.error]).toEqual([0, null]);
  expect((await at.parts('out')).equals(content)).toBe(true);
  return { at, jobId: report.jobId, actions: explanation.actions, told: text };
}

describe('outrider run of a job in a zone whose tasks are slow', () => {
  it('explains where its copies were sent and by which factor, and decides alike in a replay', async () => {
    const { at, jobId, actions, told } = await runBesideSlowZone(whole, tasks + 2);
    const backups = actions.filter(({ kind }) => kind === 'backup');
    expect(backups.length).toBeGreaterThan(0);
    for (const { zone, facts } of backups)
      expect({ zone, facts }).toMatchObject({
        zone: expect.stringMatching(/^use1-az[12]$/),
        facts: { locationFactor: expect.any(Number), zoneSamples: expect.any(Number) },
      });
    expect(told).toMatch(
      /work\/\d\/1 was launched as a backup in use1-az2: .*, its zone \S+ times as slow as where the others ran, \d+ runs? there/,
    );
    await expectSameReplay(at, jobId);
  }, 180_000);

  it('begins none of those there that wait once that is known, and decides alike in a replay', async () => {
    const { at, jobId, actions, told } = await runBesideSlowZone(Buffer.concat([whole, whole]), tasks);
    const steered = actions.filter(({ kind }) => kind === 'steer');
    expect(steered.length).toBeGreaterThan(0);
    expect(new Set(steered.map(({ zone }) => zone))).toEqual(new Set(['use1-az2']));
    expect(told).toMatch(
      /first attempts after it went to use1-az2, since tasks are slower in another zone: its zone \S+ times as slow/,
    );
    await expectSameReplay(at, jobId);
  }, 180_000);

  it('begins no task of the next stage there', async () => {
    const at = await Workplace.make();
    const lines = whole.subarray(0, whole.lastIndexOf('\n') + 1);
    await writeFile(at.path('content'), lines);
    const job = unhurriedJob('content', 'outrider');
    const next: JobSpecInput['stages'][number] = {
      ...{ name: 'next', operator: 'exec', worker },
      options: { command: ['cat'] },
      inputs: [{ stage: 'work', pattern: 'one-to-one' }],
    };
    const { exitCode, report, explanation } = await runExplained({
      ...{ place: at, job: { ...job, stages: [...job.stages, next] } },
      options: ['--slots', String(2 * tasks), '--inject', `slow-zone=${slowZone}@10`],
    });
    expect([exitCode, report.error]).toEqual([0, null]);
    expect((await at.parts('out')).equals(lines)).toBe(true);
    const steered = explanation.actions.filter(({ kind, of }) => kind === 'steer' && of?.startsWith('next/'));
    expect(steered.map(({ zone }) => zone)).toEqual(Array.from({ length: tasks }, () => 'use1-az2'));
    await expectSameReplay(at, report.jobId);
  }, 180_000);

  it.each([
    [
      'slow-zone=us-east-1a@6',
      'slow-zone=us-east-1a slows tasks on Fargate alone: this job has none (--worker fargate)',
    ],
    [
      'slow-zone=use1-az1@6',
      'slow-zone harms the storage of jobs with --storage zonal alone: this one has its intermediate data on "standard" (tasks on Fargate are slow by the name of their zone: us-east-1a)',
    ],
    [
      'lose-zone=us-east-1a@1',
      'lose-zone harms the storage of jobs with --storage zonal alone: this one has its intermediate data on "standard"\n',
    ],
  ])(
    'is refused as %s for a job without tasks on Fargate and without zonal storage',
    async (fault, why) => {
      const at = await Workplace.make();
      await writeFile(at.path('lines'), text);
      const { exitCode, err } = await at.run(
        ...['run', 'sort', '--input', 'lines', '--output', 'out', '--inject', fault],
      );
      expect(exitCode).toBe(2);
      expect(err).toContain(`--inject ${why}`);
    },
    60_000,
  );
});

describe('outrider run of such a job', () => {
  it('explains where its tasks were sent, and decides alike in a replay', async () => {
    const at = await Workplace.make();
    await writeFile(at.path('lines'), text);
    const {
      exitCode,
      report,
      explanation,
      text: told,
    } = await runExplained({
      ...{ place: at, job: jobOf('lines', 'outrider') },
      options: ['--slots', '8'],
    });
    expect([exitCode, report.error]).toEqual([0, null]);
    expect(explanation.actions.filter(({ kind }) => kind === 'place')).toMatchObject([
      { of: 'again', facts: { crossingBytes: 0 } },
    ]);
    expect(told).toMatch(
      /again had its tasks sent to zones by where their input lies \(4 \S+\): 0 B between zones, /,
    );
    await expectSameReplay(at, report.jobId);
  }, 180_000);
});
