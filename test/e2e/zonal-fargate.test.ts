import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { JobSpecInput, Worker } from '../../src/contracts/job-spec.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng } from '../../src/lib/rng.ts';
import { readLogLine } from '../../src/report/log-lines.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem, makeLogs } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { Workplace } from './command.ts';
import { expectSameReplay, runExplained } from './explained-run.ts';

const parameters = { [ParameterName.heartbeatMs]: '300', [ParameterName.tickMs]: '100' };
/** The zones that subnets of tasks are in, by the ids that directory buckets have. */
const taskZones = ['use1-az1', 'use1-az2'];
const bucketOf = (zone: string): string => `outrider-000000000000--${zone}--x-s3`;

const rng = createRng('zones of tasks');
const text = Buffer.from(
  Array.from({ length: 20_000 }, (_, line) => `${rng.next().toString(36)} ${String(line)}\n`).join(''),
);
const sorted = coreutils('sort', [], text);
const fargate: Worker = { kind: 'fargate', size: 'medium' };
const lambda: Worker = { kind: 'lambda', size: 'medium' };

/** Maps leave partitions to four reducers, which leave them to one task that merges. */
const jobOf = (input: string, { maps, map }: { maps: number; map: Worker }): JobSpecInput => ({
  name: 'zonal-on-fargate',
  policy: 'mantri',
  storage: 'zonal',
  stages: [
    {
      ...{ name: 'pass', operator: 'exec', worker: map, options: { command: ['cat'] } },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / maps) }],
      partitions: 4,
    },
    {
      ...{ name: 'again', operator: 'exec', worker: fargate, options: { command: ['cat'] } },
      inputs: [{ stage: 'pass', pattern: 'all-to-all' }],
      partitions: 1,
    },
    {
      ...{ name: 'merge', operator: 'merge-lines', worker: fargate },
      inputs: [{ stage: 'again', pattern: 'all-to-all' }],
    },
  ],
});

/** Keys of what is in the directory buckets of those zones. */
async function inZones(system: EmbeddedSystem): Promise<readonly string[]> {
  const keys: string[] = [];
  for (const zone of taskZones)
    for await (const { key } of system.objects.list({ bucket: bucketOf(zone), key: '' })) keys.push(key);
  return keys;
}

const isSorted = async (system: EmbeddedSystem, job: JobRecord): Promise<boolean> =>
  coreutils('sort', [], await system.output(job)).equals(sorted);

/** Where attempts of a stage ran, and where the outputs that others read of it are. */
async function zonesOf(system: EmbeddedSystem, { jobId }: JobRecord, stage: string) {
  const { attempts, results } = await system.outcomes(jobId);
  const ran = new Map(attempts.map(({ attemptId, zone }) => [attemptId, zone]));
  return results
    .filter(({ attemptId }) => attemptId.startsWith(`${stage}/`))
    .map(({ attemptId, zone }) => ({ ran: ran.get(attemptId), left: zone }));
}

/** What the log says of where tasks of the reducing stage go. */
async function placed(system: EmbeddedSystem, { jobId, createdAt }: JobRecord) {
  const { lines: log } = await makeLogs(system.stack).read(jobId, { since: createdAt, limit: 1_000 });
  return log
    .map(readLogLine)
    .filter(({ event, about }) => event === 'stage-placed' && about === 'again')
    .map(({ facts }) => facts);
}

describe('a zonal job on Fargate', () => {
  it('leaves what others read in the zones of its workers, who are sent to where their input lies', async () => {
    const system = await EmbeddedSystem.start({ slots: 8, parameters, zones: 2 });
    try {
      const input = await system.put('lines', text);
      const submitted = async (maps: number, map: Worker): Promise<string> =>
        system.submit(jobOf(input, { maps, map }));
      const [onFargate, onLambda, wide] = [
        await submitted(1, fargate),
        await submitted(1, lambda),
        await submitted(6, fargate),
      ];
      // One map task has all of the input, so that all reducers are to be in its zone.
      for (const jobId of [onFargate, onLambda]) {
        const job = await system.ended(jobId);
        expect(job.error).toBeUndefined();
        expect(await isSorted(system, job)).toBe(true);
        const [first, ...more] = await zonesOf(system, job, 'pass');
        const zone = first?.ran ?? '';
        expect([first?.left, more]).toEqual([zone, []]);
        expect(taskZones).toContain(zone);
        expect(await zonesOf(system, job, 'again')).toEqual(
          Array.from({ length: 4 }, () => ({ ran: zone, left: zone })),
        );
        expect(await placed(system, job)).toMatchObject([
          { zones: `4 ${zone}`, crossingBytes: 0, slowestLinkBytes: 0 },
        ]);
      }
      // Six of them are in both zones.
      const job = await system.ended(wide);
      expect(job.error).toBeUndefined();
      expect(await isSorted(system, job)).toBe(true);
      const passed = await zonesOf(system, job, 'pass');
      expect(passed.map(({ left }) => left)).toEqual(passed.map(({ ran }) => ran));
      expect(new Set(passed.map(({ left }) => left))).toEqual(new Set(taskZones));
      await expect.poll(() => inZones(system), { timeout: 15_000 }).toEqual([]);
      await expectNothingLeft(system);
    } finally {
      await system.stop();
    }
  }, 400_000);

  it('makes again what a zone held that is lost in the middle of its reduce stage, elsewhere, and is exact', async () => {
    const [zone = ''] = taskZones;
    let reads = 0;
    let isOver = false;
    const system = await EmbeddedSystem.start({
      ...{ slots: 8, parameters },
      // Some pieces have been read, and others are yet to be.
      onRequest: ({ operation, resource }) => {
        if (isOver || !resource.startsWith(bucketOf(zone))) return undefined;
        if (operation === 'GetObject') reads++;
        return reads <= 4 ? undefined : { error: { status: 503, code: 'ServiceUnavailable' } };
      },
    });
    try {
      const input = await system.put('lines', text);
      const jobId = await system.submit(jobOf(input, { maps: 6, map: fargate }));
      const job = await system.ended(jobId);
      isOver = true;
      expect(job.error).toBeUndefined();
      expect(await isSorted(system, job)).toBe(true);
      expect(reads).toBeGreaterThan(4);
      const decisions = await system.decisions(jobId);
      const lost = decisions.flatMap((each) => (each.kind === 'lose-output' ? [each] : []));
      const remade = lost.filter(({ use }) => use === undefined);
      expect(remade.length).toBeGreaterThan(0);
      expect(job.attempts.recomputed).toBe(remade.length);
      // What is there in the end is where somebody could read it.
      const passed = await zonesOf(system, job, 'pass');
      expect(passed.filter(({ left }) => left === zone)).toEqual([]);
    } finally {
      await system.stop();
    }
  }, 400_000);
});

describe('a zone that begins every object and has no answer to the rest of it', () => {
  it('is given up by its task, whose workers are all new, and the job ends well', async () => {
    const error = { status: 503, code: 'ServiceUnavailable' };
    const system = await EmbeddedSystem.start({
      ...{ slots: 4, parameters, zones: 2 },
      onRequest: ({ operation, resource }) =>
        operation === 'UploadPart' && resource.includes('--x-s3/') ? { error } : undefined,
    });
    try {
      // More than the one part that is written in one request.
      const large = Buffer.concat(Array.from({ length: Math.ceil((9 << 20) / text.length) }, () => text));
      const jobId = await system.submit({
        ...{ name: 'large', storage: 'zonal' },
        stages: [
          {
            ...{ name: 'pass', operator: 'exec', worker: fargate, options: { command: ['cat'] } },
            inputs: [{ s3: [await system.put('lines', large)], splitBytes: 2 * large.length }],
            partitions: 1,
          },
          {
            ...{ name: 'again', operator: 'exec', options: { command: ['cat'] } },
            inputs: [{ stage: 'pass', pattern: 'all-to-all' }],
          },
        ],
      });
      const job = await system.ended(jobId);
      expect(job.error).toBeUndefined();
      expect((await system.output(job)).length).toBe(large.length);
      const { attempts } = await system.outcomes(jobId);
      const message = expect.stringMatching(/does not answer$/) as unknown;
      const failures = attempts.flatMap(({ failure }) => failure ?? []);
      expect(failures[0]).toEqual({ cause: 'interrupted', message });
      // Fewer where one of the three was a copy that was cancelled.
      expect(failures.length).toBeLessThanOrEqual(3);
      expect((await zonesOf(system, job, 'pass')).map(({ left }) => left)).toEqual([undefined]);
    } finally {
      await system.stop();
    }
  }, 400_000);
});

describe('outrider run of a zonal job on Fargate', () => {
  it('loses a zone by its name, is exact, tells where tasks went, and decides alike in a replay', async () => {
    const at = await Workplace.make();
    await writeFile(at.path('lines'), text);
    const { exitCode, report, explanation } = await runExplained({
      ...{ place: at, job: jobOf('lines', { maps: 6, map: fargate }) },
      options: ['--slots', '8', '--inject', 'lose-zone=us-east-1b@0.5'],
    });
    expect([exitCode, report.error]).toEqual([0, null]);
    expect(coreutils('sort', [], await at.parts('out')).equals(sorted)).toBe(true);
    expect(report.injected).toMatchObject({ lostZone: 'use1-az2' });
    expect(explanation.actions.filter(({ kind }) => kind === 'place')).toContainEqual(
      expect.objectContaining({ of: 'again' }),
    );
    await expectSameReplay(at, report.jobId);
  }, 180_000);
});
