import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng } from '../../src/lib/rng.ts';
import { parseInjection } from '../../src/local/inject/injection.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

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
    await expect
      .poll(async () => [...(await inZones(system)).values()].flat(), { timeout: 15_000 })
      .toEqual([]);
    await expect.poll(() => system.leftovers(), { timeout: 15_000 }).toEqual([]);
  }, 120_000);

  it('is asked for: other jobs have nothing there, and no right to it', async () => {
    const job = await system.ended(await system.submit(sortOf(input)));
    expect(job.error).toBeUndefined();
    const { results } = await system.outcomes(job.jobId);
    expect(results.filter(({ zone }) => zone !== undefined)).toEqual([]);
  }, 120_000);
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
        await system.until('the second stage at work', async () => {
          const { attempts } = await system.outcomes(jobId);
          return (
            attempts.some(({ attemptId, state }) => attemptId.startsWith('again/') && state === 'running') ||
            undefined
          );
        });
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
