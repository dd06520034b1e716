import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeConnection } from '../../src/cli/connection.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { jobDataPrefix } from '../../src/contracts/keys.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng } from '../../src/lib/rng.ts';
import { parseInjection } from '../../src/local/inject/injection.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { Workplace } from './command.ts';

/** Jobs for each way in which outputs are harmed. */
const runs = Number(process.env['OUTRIDER_LOSS_RUNS'] ?? '2');
const parameters = { [ParameterName.heartbeatMs]: '300', [ParameterName.tickMs]: '100' };

const rng = createRng('lost outputs');
const text = Buffer.from(
  Array.from({ length: 60_000 }, (_, line) => `${rng.next().toString(36)} ${line}\n`).join(''),
);
const expected = coreutils('sort', [], text);

/** Sorts in four stages, of which three write for others. Four pieces, so that each stage takes its time. */
const sortOf = (input: string): JobSpecInput => ({
  name: 'sort',
  policy: 'none',
  stages: [
    {
      name: 'pass',
      operator: 'exec',
      options: { command: ['sh', '-c', 'sleep 0.3; cat'] },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / 4) }],
      partitions: 3,
    },
    {
      name: 'again',
      operator: 'exec',
      options: { command: ['sh', '-c', 'sleep 0.3; cat'] },
      inputs: [{ stage: 'pass', pattern: 'all-to-all' }],
      partitions: 3,
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'again', pattern: 'all-to-all' }] },
  ],
});

/** What becomes of an output, of which there are others; undefined: it goes. */
const harms = {
  removed: () => undefined,
  emptied: () => Buffer.alloc(0),
  truncated: (bytes) => bytes.subarray(0, bytes.length >> 1),
  flipped: (bytes) => {
    const middle = bytes.length >> 1;
    bytes[middle] = (bytes[middle] ?? 0) ^ 0x20;
    return bytes;
  },
  // All of it is there, each byte behind its place.
  shifted: (bytes) => Buffer.concat([Buffer.from('\n'), bytes]),
  // Records as they should be, each with its checksum, of another task.
  exchanged: (_, other) => other,
} as const satisfies Record<string, (bytes: Buffer, other: Buffer | undefined) => Buffer | undefined>;
type Harm = keyof typeof harms;
const harmNames = Object.keys(harms) as Harm[];

/** Harms one output that workers have left for each other, if there is one; answers whether it did. */
async function harmOne(system: EmbeddedSystem, jobId: string, harm: Harm, which: number): Promise<boolean> {
  const there: string[] = [];
  for await (const { key, sizeBytes } of system.objects.list({
    bucket: system.bucket,
    key: jobDataPrefix(jobId as JobId),
  }))
    if (sizeBytes > 0) there.push(key);
  const key = there[Math.floor(which * there.length)];
  if (key === undefined) return false;
  const ref = { bucket: system.bucket, key };
  const bytesOf = async (one: string): Promise<Buffer> =>
    Buffer.from(await system.objects.readAll({ bucket: system.bucket, key: one }));
  const other = there.find((one) => one !== key);
  if (harm === 'exchanged' && other === undefined) return false;
  const body = harms[harm](await bytesOf(key), other === undefined ? undefined : await bytesOf(other));
  if (body === undefined) await system.objects.remove(system.bucket, [key]);
  else await system.objects.write(ref, body);
  return true;
}

async function expectExact(system: EmbeddedSystem, job: JobRecord, seed: string): Promise<void> {
  expect(job.error, seed).toBeUndefined();
  expect(job.state, seed).toBe('succeeded');
  const output = await system.output(job);
  expect(coreutils('sort', [], output).equals(expected), seed).toBe(true);
}

let system: EmbeddedSystem;
let input: string;

beforeAll(async () => {
  system = await EmbeddedSystem.start({ slots: 4, parameters });
  await writeConnection(system.dir, system.stack);
  input = await system.put('lines', text);
}, 400_000);

afterAll(() => system.stop());

describe('a job whose intermediate objects are harmed under it', () => {
  it.each(harmNames)(
    'gives exactly the right lines where some are %s',
    async (harm) => {
      let recomputed = 0;
      for (let run = 0; run < runs; run++) {
        const seed = `${harm} ${run}`;
        const draws = createRng(seed);
        const jobId = await system.submit(sortOf(input));
        for (let strikes = 0; strikes < 2; strikes++) {
          const which = draws.next();
          await system.until(
            'an output',
            async () => (await harmOne(system, jobId, harm, which)) || undefined,
          );
          await new Promise((resolve) => setTimeout(resolve, 1_500 * draws.next()));
        }
        const job = await system.ended(jobId);
        await expectExact(system, job, seed);
        const lost = (await system.decisions(jobId)).filter(({ kind }) => kind === 'lose-output');
        expect(job.attempts.recomputed, seed).toBe(lost.length);
        recomputed += lost.length;
        await expectNothingLeft(system);
      }
      if (runs > 1) expect(recomputed).toBeGreaterThan(0);
    },
    600_000,
  );

  it('is told of in its log, and counted in its report', async () => {
    const jobId = await system.submit(sortOf(input));
    await system.until('an output', async () => (await harmOne(system, jobId, 'removed', 0)) || undefined);
    const job = await system.ended(jobId);
    const place = await Workplace.make();
    const { out } = await place.run('logs', jobId, '--state-dir', system.dir);
    const lost = (await system.decisions(jobId)).find((each) => each.kind === 'lose-output');
    if (lost?.kind !== 'lose-output') throw new Error('nothing was lost');
    expect(out).toMatch(
      new RegExp(`${lost.attemptId} output lost {2}how missing, foundBy \\S+, recomputed true`),
    );
    const report = await place.run('report', jobId, '--state-dir', system.dir);
    expect(report.out).toContain(`${job.attempts.recomputed} recomputed`);
    const explained = await place.run('explain', jobId, '--state-dir', system.dir, '--json');
    expect(explained.exitCode, explained.err).toBe(0);
    expect(JSON.parse(explained.out)).toMatchObject({
      failures: expect.arrayContaining([expect.objectContaining({ cause: 'input-lost' })]),
    });
  }, 120_000);
});

describe('a part of the output that is gone before it is published', () => {
  it('is made again, and the output is exact', async () => {
    const command = ['sh', '-c', 'if [ "$OUTRIDER_TASK$OUTRIDER_ATTEMPT" = 10 ]; then sleep 4; fi; cat'];
    const jobId = await system.submit({
      name: 'parts',
      policy: 'none',
      stages: [
        {
          name: 'pass',
          operator: 'exec',
          options: { command },
          inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / 2) }],
        },
      ],
    });
    await system.until('the first part', async () => {
      const { results } = await system.outcomes(jobId);
      return results.some(({ attemptId }) => attemptId === 'pass/0/0') || undefined;
    });
    for await (const upload of system.objects.listUploads({ bucket: system.bucket, key: 'output/' }))
      if (upload.key.endsWith('part-00000')) await system.objects.abortUpload(upload);
    const job = await system.ended(jobId);
    expect(job.error).toBeUndefined();
    expect(job.attempts).toMatchObject({ launched: 3, recomputed: 1 });
    expect((await system.output(job)).equals(text)).toBe(true);
  }, 120_000);
});

describe('--inject lose-object, corrupt-object', () => {
  it('harms objects of the embedded stack, and the output is exact', async () => {
    for (let seed = 1; seed <= runs; seed++) {
      const own = await EmbeddedSystem.start({
        ...{ slots: 4, parameters },
        injection: parseInjection(`lose-object=2,corrupt-object=2,seed=${seed}`),
      });
      try {
        const job = await own.ended(await own.submit(sortOf(await own.put('lines', text))));
        await expectExact(own, job, `seed ${seed}`);
        // A job that writes few objects may be over before all four were met.
        const { lostObjects = 0, corruptObjects = 0 } = own.stack.injected() ?? {};
        expect(lostObjects + corruptObjects, `seed ${seed}`).toBeGreaterThan(1);
        expect(Math.max(lostObjects, corruptObjects), `seed ${seed}`).toBe(2);
        expect(job.attempts.recomputed).toBeGreaterThan(0);
      } finally {
        await own.stop();
      }
    }
  }, 600_000);
});
