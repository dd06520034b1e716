import { describe, expect, it } from 'vitest';
import { cancelJob } from '../../src/app/change-job.ts';
import { finishJob } from '../../src/app/finish-job.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { durationMs } from '../../src/contracts/units.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { twoCopies } from '../support/cloned-jobs.ts';
import { someOf } from '../support/draws.ts';
import type { HardAccount } from '../support/hard-account.ts';
import { HardProcess, type Ill } from '../support/hard-process.ts';
import { hardRun, wrongWith } from '../support/hard-runs.ts';

/** A header and sixty rows, of which two and two have one key. */
const rows = Array.from(
  { length: 60 },
  (_, row) => `${String((row * 7) % 30)},row ${String(row)} ${'x'.repeat(300)}`,
);
const input = ['k,v', ...rows, ''].join('\n');
const bytesOf = (text: string) => Buffer.from(text);
const sorted = ['k,v', ...rows].toSorted((a, b) => Buffer.compare(bytesOf(a), bytesOf(b)));
/** All pairs of rows whose keys are equal. */
const joined = rows.flatMap((left) => {
  const [key] = left.split(',');
  return rows.flatMap((right) =>
    right.startsWith(`${String(key)},`) ? [`${left},${right.slice(String(key).length + 1)}`] : [],
  );
});

const sort: JobSpecInput = {
  ...builtinJob('sort', { inputs: ['s3://input/a'], splitBytes: 10_000, partitions: 2 }),
  policy: 'none',
};
const sides = { inputs: ['s3://input/a'], right: ['s3://input/a'], leftKey: 'k', rightKey: 'k' };
const join: JobSpecInput = {
  ...builtinJob('join', { ...sides, format: 'csv', splitBytes: 10_000, partitions: 2 }),
  policy: 'none',
};
/** Every task of it twice. */
const cloned = {
  policy: 'dolly',
  policyConfig: twoCopies({ assignment: 'delay', assignmentWaitMs: 5_000 }),
} as const;
const isSorted = (output: string): boolean => output === `${sorted.join('\n')}\n`;
const isJoined = (output: string): boolean =>
  output.split('\n').toSorted().join('\n') === ['', 'k,v,v_right', ...joined].toSorted().join('\n');

/** What others do to a job just then. */
type Harm = (account: HardAccount, jobId: JobId) => Promise<unknown>;

/** Does something to the data of tasks that is there, every `nth` object of it. */
const toData =
  (nth: number, harm: (account: HardAccount, key: string) => Promise<void>): Harm =>
  async (account) => {
    const keys: string[] = [];
    for await (const { key, sizeBytes } of account.objects.list({ bucket: 'data', key: 'jobs/' }))
      if (key.includes('/data/') && sizeBytes > 0) keys.push(key);
    for (const [at, key] of keys.entries()) if (at % nth === 0) await harm(account, key);
  };
const removed: Parameters<typeof toData>[1] = ({ objects }, key) => objects.remove('data', [key]);
const changed: Parameters<typeof toData>[1] = async ({ objects }, key) => {
  const ref = { bucket: 'data', key };
  const bytes = Buffer.from(await objects.readAll(ref));
  const at = Math.floor(bytes.length / 2);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 0x10, at);
  await objects.write(ref, bytes);
};
const process = (account: HardAccount) => account.deps(new HardProcess(account.clock));

const cancelled: Harm = async (account, jobId) => {
  await cancelJob(process(account), jobId);
};

const harms = {
  'all data of tasks is removed': toData(1, removed),
  'every third output of a task is changed': toData(3, changed),
  'uploads of its parts are given up': async (account) => {
    for (const upload of await account.uploads()) await account.objects.abortUpload(upload);
  },
  'it is cancelled': cancelled,
  'another Finish runs to its end': (account, jobId) =>
    finishJob(process(account), jobId, durationMs(1_000)).catch(() => undefined),
} as const satisfies Readonly<Record<string, Harm>>;

/**
 * Has a harm come at each `nth` call of a process, in a run of its own each time; answers how many runs of these made tasks
 * again or were cancelled, and how many did not.
 */
async function harmEach(
  who: string,
  nth: number,
  {
    spec,
    isOutput,
    harm,
    ill,
  }: {
    readonly spec: JobSpecInput;
    readonly isOutput: (output: string) => boolean;
    readonly harm: Harm;
    readonly ill?: Omit<Ill, 'call'>;
  },
): Promise<{ readonly met: number; readonly unmet: number }> {
  for (let [at, met, unmet] = [1, 0, 0]; ; at += nth) {
    let place: string | undefined;
    const end = await hardRun({
      ...{ spec, input, taskMs: 3_000, deathToldMs: 500 },
      ills: ill === undefined ? {} : { [who]: [{ ...ill, call: at }] },
      onCall: async (of, account) => {
        if (of.process !== who || of.call !== at) return;
        place = of.place;
        const { jobs } = await account.stores.jobs.list({ limit: 1 });
        for (const { jobId } of jobs) await harm(account, jobId);
      },
    });
    const wrong = wrongWith(end, isOutput, harm === cancelled);
    expect({ at, place, wrong }).toEqual({ at, place, wrong: [] });
    if (place === undefined) return { met, unmet };
    const { state, attempts } = end.verdict?.job ?? {};
    if (state === 'cancelled' || (attempts?.recomputed ?? 0) > 0) met += 1;
    else unmet += 1;
  }
}

const freeze: Omit<Ill, 'call'> = { kind: 'freeze-after', ms: 90_000 };

describe('a job to which something is done at a step of its Finish', () => {
  it.each(Object.entries(harms))(
    'ends exact and leaves nothing, where %s',
    async (name, harm) => {
      // Parts alone are needed still, and who cancels comes too late.
      const isNeeded = name === 'uploads of its parts are given up';
      for (const [nth, job] of someOf([
        [1, { spec: sort, isOutput: isSorted, ill: freeze }],
        [2, { spec: { ...sort, ...cloned }, isOutput: isSorted }],
        [2, { spec: { ...join, ...cloned }, isOutput: isJoined, ill: freeze }],
      ] as const)) {
        const { met, unmet } = await harmEach('finish 1', nth, { ...job, harm });
        expect(met > 0).toBe(isNeeded);
        expect(unmet).toBeGreaterThanOrEqual(5);
      }
    },
    200_000,
  );
});

describe('a job to which something is done at a step of its scheduler', () => {
  it.each([
    'all data of tasks is removed',
    'every third output of a task is changed',
    'it is cancelled',
  ] as const)(
    'ends exact, or as one that was cancelled, and leaves nothing, where %s',
    async (name) => {
      const harm = harms[name];
      for (const job of [
        { spec: sort, isOutput: isSorted, ill: freeze },
        { spec: { ...join, ...cloned }, isOutput: isJoined },
      ]) {
        const { met } = await harmEach('scheduler 1', 16, { ...job, harm });
        expect(met).toBeGreaterThan(0);
      }
    },
    200_000,
  );
});
