import { createServer, type Server } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { AttemptId, JobId } from '../../src/contracts/ids.ts';
import { attemptDataKey } from '../../src/contracts/keys.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng } from '../../src/lib/rng.ts';
import { parseInjection } from '../../src/local/inject/injection.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { whereOutputsAreLost } from '../support/lossy-search.ts';

/** Jobs of which workers are killed. */
const runs = Number(process.env['OUTRIDER_LOSS_RUNS'] ?? '2');
/** Such jobs with copies, and as many without. */
const copyRuns = Number(process.env['OUTRIDER_COPY_RUNS'] ?? '1');
const parameters = { [ParameterName.heartbeatMs]: '300', [ParameterName.tickMs]: '100' };

const rng = createRng('kept outputs');
const text = Buffer.from(
  Array.from({ length: 40_000 }, (_, line) => `${rng.next().toString(36)} ${line}\n`).join(''),
);
const expected = coreutils('sort', [], text);
const worker = { kind: 'fargate' } as const;

/** Sorts in three stages. The last task of the first waits for a file, so that others' outputs can be harmed before they are read. */
const sortOf = (input: string, gate: string): JobSpecInput => ({
  name: 'sort',
  policy: 'none',
  storage: 'worker-local',
  stages: [
    {
      name: 'pass',
      operator: 'exec',
      worker,
      options: {
        command: ['sh', '-c', `while [ "$OUTRIDER_TASK" = 3 -a ! -e '${gate}' ]; do sleep 0.1; done; cat`],
      },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / 4) }],
      partitions: 2,
    },
    {
      name: 'again',
      operator: 'exec',
      worker,
      options: { command: ['cat'] },
      inputs: [{ stage: 'pass', pattern: 'all-to-all' }],
      partitions: 1,
    },
    { name: 'merge', operator: 'merge-lines', worker, inputs: [{ stage: 'again', pattern: 'all-to-all' }] },
  ],
});
const early = ['pass/0', 'pass/1', 'pass/2'];

/** A search of the same form, of which outputs are worth a copy each: they are a small part of what was read. */
const searchOf = (input: string, gate: string, copies: boolean): JobSpecInput => {
  const { stages, ...sort } = sortOf(input, gate);
  const [pass] = stages;
  if (pass === undefined) throw new Error('a sort has stages');
  const [shell, flag, script] = (pass.options as { command: string[] }).command;
  const command = [shell, flag, script?.replace(/cat$/, 'grep "77$"')] as string[];
  return {
    ...sort,
    ...whereOutputsAreLost(copies),
    stages: [
      { ...pass, options: { command } },
      { name: 'merge', operator: 'merge-lines', worker, inputs: [{ stage: 'pass', pattern: 'all-to-all' }] },
    ],
  };
};

let system: EmbeddedSystem;
let input: string;
let gates = 0;

beforeAll(async () => {
  system = await EmbeddedSystem.start({ slots: 8, parameters });
  input = await system.put('lines', text);
}, 400_000);

afterAll(() => system.stop());

/** A worker that has ended its attempt and stays for readers. */
interface Keeper {
  readonly pid: number;
  readonly port: number;
}

/** A job of which the first outputs are there, and that goes on with `open`. */
interface HeldJob {
  readonly jobId: string;
  readonly keepers: ReadonlyMap<string, Keeper>;
  open(): Promise<void>;
}

async function heldJob(specOf = sortOf): Promise<HeldJob> {
  const gate = join(system.dir, `gate-${gates++}`);
  const jobId = await system.submit(specOf(input, gate));
  await system.until('the first outputs', async () => {
    const { results } = await system.outcomes(jobId);
    return results.length === early.length || undefined;
  });
  const { results, attempts } = await system.outcomes(jobId);
  const keepers = new Map<string, Keeper>();
  for (const { taskId, attemptId, worker: address } of results) {
    const node = attempts.find((each) => each.attemptId === attemptId)?.node;
    const pid = system.stack.processes().find(({ task }) => task === node)?.pid;
    if (pid === undefined || address === undefined) throw new Error(`nobody keeps ${taskId}`);
    keepers.set(taskId, { pid, port: Number(address.split(':')[1]) });
  }
  return { jobId, keepers, open: () => writeFile(gate, '') };
}

function keeperOf({ keepers }: HeldJob, taskId: string): Keeper {
  const keeper = keepers.get(taskId);
  if (keeper === undefined) throw new Error(`nobody keeps ${taskId}`);
  return keeper;
}

async function expectExact(jobId: string, seed: string, sorted = expected): Promise<JobRecord> {
  const job = await system.ended(jobId);
  expect(job.error, seed).toBeUndefined();
  expect(coreutils('sort', [], await system.output(job)).equals(sorted), seed).toBe(true);
  return job;
}

/** Tasks whose outputs were found lost, in the order of their names. */
const lostOf = async (jobId: string): Promise<string[]> =>
  (await system.decisions(jobId))
    .flatMap((each) => (each.kind === 'lose-output' ? [each.attemptId.replace(/\/\d+$/, '')] : []))
    .toSorted();

const expectNoWorkerLeft = async (): Promise<void> => {
  const tasks = (): unknown => system.stack.processes().filter(({ kind }) => kind === 'fargate');
  await expect.poll(tasks, { timeout: 30_000 }).toEqual([]);
  await expectNothingLeft(system);
};

describe('a job whose outputs stay with their workers', () => {
  it('has them nowhere else, is exact, and leaves no worker', async () => {
    const held = await heldJob();
    const inBucket: string[] = [];
    for await (const { key } of system.objects.list({
      bucket: system.bucket,
      key: `jobs/${held.jobId}/data/`,
    }))
      inBucket.push(key);
    expect(inBucket).toEqual([]);
    await held.open();
    const job = await expectExact(held.jobId, 'undisturbed');
    const { results } = await system.outcomes(held.jobId);
    const kept = results.filter((each) => each.worker !== undefined).map(({ taskId }) => taskId);
    expect(kept.toSorted()).toEqual(['again/0', 'again/1', ...early, 'pass/3']);
    expect(job.attempts).toMatchObject({ launched: 7, recomputed: 0 });
    await expectNoWorkerLeft();
  }, 120_000);

  it('has exactly those made again whose workers were killed before they were read, on S3', async () => {
    for (let run = 0; run < runs; run++) {
      const seed = `killed ${run}`;
      const draws = createRng(seed);
      const killed = early.filter(() => draws.next() < 0.6);
      const held = await heldJob();
      for (const task of killed) process.kill(keeperOf(held, task).pid, 'SIGKILL');
      await held.open();
      const job = await expectExact(held.jobId, seed);
      expect(await lostOf(held.jobId), seed).toEqual(killed);
      expect(job.attempts.recomputed, seed).toBe(killed.length);
      const { results } = await system.outcomes(held.jobId);
      // So are those whose first attempt has failed for want of them.
      const onS3 = results.filter((each) => each.partitions !== undefined && each.worker === undefined);
      const ofFirst = onS3.map(({ taskId }) => taskId).filter((taskId) => taskId.startsWith('pass/'));
      expect(ofFirst.toSorted(), seed).toEqual(killed);
      await expectNoWorkerLeft();
    }
  }, 3_000_000);

  it('has one made again whose worker is frozen, which leaves nothing once it goes on', async () => {
    const held = await heldJob();
    const { pid } = keeperOf(held, 'pass/1');
    process.kill(pid, 'SIGSTOP');
    await held.open();
    const job = await expectExact(held.jobId, 'frozen');
    expect(await lostOf(held.jobId)).toEqual(['pass/1']);
    expect(job.attempts.recomputed).toBe(1);
    process.kill(pid, 'SIGCONT');
    await expectNoWorkerLeft();
  }, 120_000);

  it('takes no byte from whoever has come to have the address of one', async () => {
    const held = await heldJob();
    const { pid, port } = keeperOf(held, 'pass/2');
    process.kill(pid, 'SIGKILL');
    let asked = 0;
    const stranger: Server = createServer((request, response) => {
      asked++;
      const [start = 0, end = 0] = String(request.headers['x-outrider-range']).split('-').map(Number);
      const size = {
        'x-outrider-size': String(text.length),
        'x-outrider-proof': request.headers['x-outrider-proof'],
      };
      response.writeHead(200, size).end(text.subarray(0, end - start));
    });
    await system.until(
      'its port',
      () =>
        new Promise<true | undefined>((resolve) => {
          stranger.once('error', () => {
            resolve(undefined);
          });
          stranger.listen(port, '127.0.0.1', () => {
            resolve(true);
          });
        }),
    );
    try {
      await held.open();
      await expectExact(held.jobId, 'another');
      expect(asked).toBeGreaterThan(0);
      expect(await lostOf(held.jobId)).toEqual(['pass/2']);
    } finally {
      stranger.closeAllConnections();
      stranger.close();
    }
    await expectNoWorkerLeft();
  }, 120_000);

  it('makes none again whose worker was told to stop, and put it into the bucket before it did', async () => {
    const held = await heldJob();
    process.kill(keeperOf(held, 'pass/0').pid, 'SIGTERM');
    const key = attemptDataKey(held.jobId as JobId, 'pass/0/0' as AttemptId);
    await system.until('its output in the bucket', () => system.objects.head({ bucket: system.bucket, key }));
    await held.open();
    const job = await expectExact(held.jobId, 'stopped');
    expect(job.attempts.recomputed).toBe(0);
    await expectNoWorkerLeft();
  }, 120_000);

  it('makes none again of which its worker has made a copy, as was ordered', async () => {
    const found = coreutils('sort', [], coreutils('grep', ['77$'], text));
    const remade = { on: 0, off: 0 };
    for (let run = 0; run < copyRuns; run++) {
      const draws = createRng(`copies ${run}`);
      const spared = early[Math.floor(draws.next() * early.length)];
      const killed = early.filter((task) => task !== spared);
      for (const copies of [true, false]) {
        const seed = `copies ${String(copies)} ${run}`;
        const held = await heldJob((from, gate) => searchOf(from, gate, copies));
        if (copies)
          await system.until('copies', async () => {
            const { replicas } = await system.outcomes(held.jobId);
            return replicas.length === early.length || undefined;
          });
        for (const task of killed) process.kill(keeperOf(held, task).pid, 'SIGKILL');
        await held.open();
        const job = await expectExact(held.jobId, seed, found);
        expect(await lostOf(held.jobId), seed).toEqual(killed);
        expect(job.attempts.recomputed, seed).toBe(copies ? 0 : killed.length);
        remade[copies ? 'on' : 'off'] += job.attempts.recomputed;
        await expectNoWorkerLeft();
      }
    }
    console.log(`${JSON.stringify(remade)} outputs made again, in ${copyRuns} runs each`);
  }, 3_000_000);
});

describe('--inject kill', () => {
  it('takes workers with what they keep, and the output is exact', async () => {
    for (let seed = 1; seed <= runs; seed++) {
      const own = await EmbeddedSystem.start({
        ...{ slots: 8, parameters },
        injection: parseInjection(`kill=4,seed=${seed}`),
      });
      try {
        const job = await own.ended(await own.submit(sortOf(await own.put('lines', text), '/')));
        expect(job.error, `seed ${seed}`).toBeUndefined();
        expect(coreutils('sort', [], await own.output(job)).equals(expected), `seed ${seed}`).toBe(true);
        expect(own.stack.injected()?.killed, `seed ${seed}`).toBe(4);
      } finally {
        await own.stop();
      }
    }
  }, 600_000);
});
