import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeConnection } from '../../src/cli/connection.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng } from '../../src/lib/rng.ts';
import { parseInjection } from '../../src/local/inject/injection.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { findStage, whereOutputsAreLost } from '../support/lossy-search.ts';
import { Workplace } from './command.ts';

const parameters = { [ParameterName.heartbeatMs]: '300', [ParameterName.tickMs]: '100' };
const zones = ['use1-az1', 'use1-az2', 'use1-az3'];
const bucketOf = (zone: string): string => `outrider-000000000000--${zone}--x-s3`;

/** Jobs whose zone is lost in the midst of their work. */
const runs = Number(process.env['OUTRIDER_LOSS_RUNS'] ?? '2');

const rng = createRng('zones');
const text = Buffer.from(
  Array.from({ length: 60_000 }, (_, line) => `${rng.next().toString(36)} ${line}\n`).join(''),
);
const expected = coreutils('sort', [], text);

/** Sorts in three stages, of which two write for others and are slow, the second so that each part of it takes its time. */
const sortOf = (input: string, storage?: 'standard' | 'zonal'): JobSpecInput => ({
  name: 'sort',
  ...(storage === undefined ? {} : { storage }),
  stages: [
    {
      name: 'pass',
      operator: 'exec',
      options: { command: ['sh', '-c', 'sleep 0.3; cat'] },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / 6) }],
      partitions: 4,
    },
    {
      name: 'again',
      operator: 'exec',
      options: { command: ['sh', '-c', 'sleep 0.6; cat'] },
      inputs: [{ stage: 'pass', pattern: 'all-to-all' }],
      partitions: 3,
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'again', pattern: 'all-to-all' }] },
  ],
});

const sorted = async (
  system: EmbeddedSystem,
  job: Parameters<EmbeddedSystem['output']>[0],
): Promise<boolean> => coreutils('sort', [], await system.output(job)).equals(expected);

/** Keys of what is in the directory buckets, by zone. */
async function inZones(system: EmbeddedSystem): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, string[]>();
  for (const zone of zones) {
    const keys: string[] = [];
    for await (const { key } of system.objects.list({ bucket: bucketOf(zone), key: '' })) keys.push(key);
    found.set(zone, keys);
  }
  return found;
}

async function untilAtWork(system: EmbeddedSystem, jobId: string, stage: string): Promise<void> {
  await system.until(`stage ${stage} at work`, async () => {
    const { attempts } = await system.outcomes(jobId);
    const isAtWork = attempts.some(
      ({ attemptId, state }) => attemptId.startsWith(`${stage}/`) && state === 'running',
    );
    return isAtWork || undefined;
  });
}

/** Of jobs that have ended, in the zones and elsewhere. */
async function expectNothingInZones(system: EmbeddedSystem): Promise<void> {
  await expect
    .poll(async () => [...(await inZones(system)).values()].flat(), { timeout: 15_000 })
    .toEqual([]);
  await expectNothingLeft(system);
}

describe('the tier zonal', () => {
  let system: EmbeddedSystem;
  let input: string;

  beforeAll(async () => {
    system = await EmbeddedSystem.start({ slots: 4, parameters });
    input = await system.put('lines', text);
  }, 400_000);

  afterAll(() => system.stop());

  it('keeps what workers write for each other in the zones of those, and nothing once the job has ended', async () => {
    const jobId = await system.submit(sortOf(input, 'zonal'));
    await system.until('outputs in two zones', async () => {
      const found = [...(await inZones(system)).values()].filter((keys) => keys.length > 0);
      return found.length > 1 || undefined;
    });
    const job = await system.ended(jobId);
    expect(job.error).toBeUndefined();
    expect(await sorted(system, job)).toBe(true);
    const { attempts, results } = await system.outcomes(jobId);
    const zoneOf = new Map(attempts.map(({ attemptId, zone }) => [attemptId, zone]));
    const others = results.filter(({ partitions }) => partitions !== undefined);
    expect(others).toHaveLength(10);
    for (const { attemptId, zone } of others) expect(zone, attemptId).toBe(zoneOf.get(attemptId));
    await expectNothingInZones(system);
  }, 120_000);

  it('is asked for: other jobs have nothing there, and no right to it', async () => {
    const job = await system.ended(await system.submit(sortOf(input)));
    expect(job.error).toBeUndefined();
    const { results } = await system.outcomes(job.jobId);
    expect(results.filter(({ zone }) => zone !== undefined)).toEqual([]);
  }, 120_000);
});

describe('losses that a job has met', () => {
  it('are what the next one begins with', async () => {
    // Nobody has read what is about to be lost.
    let isHeld = false;
    const system = await EmbeddedSystem.start({
      ...{ slots: 4, parameters },
      onRequest: ({ operation, resource }) =>
        isHeld && operation === 'GetObject' && zones.some((zone) => resource.startsWith(bucketOf(zone)))
          ? { error: { status: 503, code: 'SlowDown' } }
          : undefined,
    });
    try {
      await writeConnection(system.dir, system.stack);
      const input = await system.put('lines', text);
      // No output is worth a copy that takes so long: the log says so of each stage, with r.
      const job: JobSpecInput = {
        ...sortOf(input, 'zonal'),
        policyConfig: { mantri: { copyLatencyMs: 1_000_000 } },
      };
      /** The largest r that the log of a job tells. */
      const toldBy = async (jobId: string): Promise<number> => {
        const place = await Workplace.make();
        const { out } = await place.run('logs', jobId, '--state-dir', system.dir);
        const rates = [...out.matchAll(/lossProbability ([\d.e-]+)/g)].map(([, rate]) => Number(rate));
        return Math.max(...rates);
      };
      const before = await system.submit(job);
      expect((await system.ended(before)).error).toBeUndefined();
      expect(await toldBy(before)).toBeLessThanOrEqual(0.001);
      isHeld = true;
      const lossy = await system.submit(job);
      await untilAtWork(system, lossy, 'again');
      for (const [zone, keys] of await inZones(system))
        if (keys.length > 0) await system.objects.remove(bucketOf(zone), keys);
      isHeld = false;
      expect((await system.ended(lossy)).attempts.recomputed).toBeGreaterThan(0);
      const after = await system.submit(job);
      expect((await system.ended(after)).error).toBeUndefined();
      expect(await toldBy(after)).toBeGreaterThan(0.005);
    } finally {
      await system.stop();
    }
  }, 400_000);
});

describe('a zone that is lost while a job reads what it holds', () => {
  it('leaves the output exact: what it held is made again, whether it does not answer or is empty', async () => {
    let recomputed = 0;
    for (let seed = 1; seed <= runs; seed++) {
      const draws = createRng(`zone ${String(seed)}`);
      const zone = zones[Math.floor(draws.next() * zones.length)] ?? '';
      let isOut = false;
      const system = await EmbeddedSystem.start({
        ...{ slots: 4, parameters },
        onRequest: ({ resource }) =>
          isOut && resource.startsWith(bucketOf(zone))
            ? { error: { status: 503, code: 'ServiceUnavailable' } }
            : undefined,
      });
      try {
        const jobId = await system.submit(sortOf(await system.put('lines', text), 'zonal'));
        await untilAtWork(system, jobId, 'again');
        await new Promise((resolve) => setTimeout(resolve, 1_000 * draws.next()));
        const held = (await inZones(system)).get(zone) ?? [];
        if (draws.next() < 0.5) isOut = true;
        else if (held.length > 0) await system.objects.remove(bucketOf(zone), held);
        const job = await system.ended(jobId);
        expect(job.error, `seed ${seed}`).toBeUndefined();
        expect(await sorted(system, job), `seed ${seed}`).toBe(true);
        const lost = (await system.decisions(jobId)).filter(({ kind }) => kind === 'lose-output');
        expect(job.attempts.recomputed, `seed ${seed}`).toBe(lost.length);
        recomputed += lost.length;
      } finally {
        await system.stop();
      }
    }
    if (runs > 5) console.log(`${recomputed} outputs made again in ${runs} runs`);
  }, 3_000_000);
});

describe('a zone that is lost in the middle of a reduce stage', () => {
  /** Three reducers, one a slot, read what eight searches have left, which is little. The lists of two wait for slots. */
  const searchOf = (lines: string, copies: boolean): JobSpecInput => ({
    name: 'search',
    storage: 'zonal',
    ...whereOutputsAreLost(copies),
    stages: [
      findStage(lines, { splitBytes: Math.ceil(text.length / 8), firstS: 3, partitions: 6 }),
      {
        name: 'reduce',
        operator: 'exec',
        options: { command: ['sh', '-c', 'cat; sleep 1'] },
        inputs: [{ stage: 'find', pattern: 'all-to-all' }],
        partitions: 1,
      },
      { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'reduce', pattern: 'all-to-all' }] },
    ],
  });
  const found = coreutils('sort', [], coreutils('grep', ['77$'], text));

  /** Runs a search whose first reducers have read when the zone that holds most is lost. */
  async function runLossy(copies: boolean) {
    let zone = '';
    let isOut = false;
    const copiesRead = new Set<string>();
    const isThere = (place = ''): boolean => !isOut || !place.startsWith(bucketOf(zone));
    // Who cleans up is answered, whenever that is: what a zone that stays away holds is left to the bucket's lifecycle rule.
    const cleanUps = ['CreateSession', 'ListMultipartUploads', 'ListObjectsV2', 'DeleteObjects'];
    const system = await EmbeddedSystem.start({
      ...{ slots: 4, parameters },
      onRequest: ({ operation, resource, source }) => {
        if (operation === 'GetObject' && /\/data\/\w+\/find\/\d+\/\d{7}$/.test(resource))
          copiesRead.add(resource);
        return cleanUps.includes(operation) || (isThere(resource) && isThere(source))
          ? undefined
          : { error: { status: 503, code: 'ServiceUnavailable' } };
      },
    });
    try {
      await writeConnection(system.dir, system.stack);
      const jobId = await system.submit(searchOf(await system.put('lines', text), copies));
      await untilAtWork(system, jobId, 'reduce');
      const held = [...(await inZones(system))].toSorted(([, a], [, b]) => b.length - a.length);
      zone = held[0]?.[0] ?? '';
      isOut = true;
      const job = await system.ended(jobId);
      isOut = false;
      expect(job.error).toBeUndefined();
      expect(coreutils('sort', [], await system.output(job)).equals(found)).toBe(true);
      const decisions = await system.decisions(jobId);
      const lost = decisions.flatMap((each) => (each.kind === 'lose-output' ? [each] : []));
      const copied = decisions.flatMap((each) => (each.kind === 'copy-output' ? [each] : []));
      expect(job.attempts.recomputed).toBe(lost.filter(({ use }) => use === undefined).length);
      await expectNothingInZones(system);
      const place = await Workplace.make();
      const logs = await place.run('logs', jobId, '--state-dir', system.dir);
      const report = await place.run('report', jobId, '--state-dir', system.dir);
      return { job, copied, copiesRead, logs: logs.out, report: report.out };
    } finally {
      await system.stop();
    }
  }

  it('makes less again with copies in the data bucket than without, and tells what was copied, and why', async () => {
    const remade = { on: 0, off: 0 };
    let used = 0;
    for (let run = 0; run < runs; run++) {
      const off = await runLossy(false);
      expect(off.copied).toEqual([]);
      remade.off += off.job.attempts.recomputed;
      const on = await runLossy(true);
      remade.on += on.job.attempts.recomputed;
      // Either a reader tells of the loss, or another that was sent to the copies is sooner.
      used += on.copiesRead.size;
      const worth = on.copied.filter(({ reason }) => reason === 'worth');
      const read = on.job.stages.reduce((sum, { bytesIn }) => sum + bytesIn, 0);
      expect(worth.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(read / 10);
      for (const { attemptId, bytes } of worth)
        expect(on.logs).toMatch(
          new RegExp(
            `${attemptId} copied {2}reason worth, lossProbability \\S+, redoMs \\d+, lossCostMs \\S+, copyMs \\d+, bytes ${bytes}, tokens \\d+`,
          ),
        );
      expect(on.report).toMatch(/copies {4}\d+ outputs? copied lest they be lost: .* that may be/);
    }
    console.log(
      `${JSON.stringify(remade)} outputs made again, ${used} copies read instead, in ${runs} runs each`,
    );
    expect(used).toBeGreaterThan(0);
    expect(remade.on).toBeLessThan(remade.off);
  }, 3_000_000);
});

describe('--inject slow-zone', () => {
  it('slows the storage of a zone; the output is exact, with few copies, and nothing counts as lost', async () => {
    const [zone = ''] = zones;
    const injection = parseInjection(`slow-zone=${zone}@50,seed=3`);
    const system = await EmbeddedSystem.start({ slots: 4, parameters, injection });
    try {
      const jobId = await system.submit(sortOf(await system.put('lines', text), 'zonal'));
      const job = await system.ended(jobId);
      expect(job.error).toBeUndefined();
      expect(await sorted(system, job)).toBe(true);
      expect(system.stack.injected()?.slowZone).toBe(zone);
      // Six and four and three tasks: each is copied once at most.
      expect(job.attempts.launched).toBeLessThanOrEqual(26);
      expect(job.attempts.recomputed).toBe(0);
      await expectNothingLeft(system);
    } finally {
      await system.stop();
    }
  }, 300_000);
});

describe('--inject lose-zone', () => {
  it('loses the storage of a zone, and the output is exact', async () => {
    const [zone = ''] = zones;
    const injection = parseInjection(`lose-zone=${zone}@1.5,seed=3`);
    const system = await EmbeddedSystem.start({ slots: 4, parameters, injection });
    try {
      const job = await system.ended(await system.submit(sortOf(await system.put('lines', text), 'zonal')));
      expect(job.error).toBeUndefined();
      expect(await sorted(system, job)).toBe(true);
      expect(system.stack.injected()?.lostZone).toBe(zone);
    } finally {
      await system.stop();
    }
  }, 120_000);

  it('is refused for a zone that the stack has not', async () => {
    const injection = parseInjection('lose-zone=use1-az9@1');
    await expect(EmbeddedSystem.start({ injection })).rejects.toThrow(
      'lose-zone must name one of the zones use1-az1, use1-az2, use1-az3, not use1-az9',
    );
  }, 60_000);
});
