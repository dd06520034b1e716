import { describe, expect, it } from 'vitest';
import { submitJob } from '../../src/app/submit-job.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { durationMs } from '../../src/contracts/units.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { HardAccount } from '../support/hard-account.ts';
import { HardProcess, type Ill, illKinds } from '../support/hard-process.ts';

const spec = {
  ...builtinJob('wordcount', { inputs: ['s3://input/a'] }),
  output: 's3://data/counts/',
};
const request = { spec, clientToken: 'once' };

/** What two submissions with one client token come to, and a third one half an hour later. */
interface Submitted {
  /** Jobs that were answered. */
  readonly answered: readonly JobId[];
  /** Jobs on record, and those that have an execution. */
  readonly recorded: readonly JobId[];
  readonly started: readonly JobId[];
  /** What went wrong with the third, which nothing befalls. */
  readonly error: unknown;
  readonly places: readonly string[];
}

/** Submits twice, the second as the first makes its call number `at`; a thing befalls the first then. */
async function submitted(at: number, ill: Ill): Promise<Submitted> {
  const first = { places: [] as readonly string[] };
  const answered: JobId[] = [];
  const recorded: JobId[] = [];
  const started: JobId[] = [];
  let error: unknown;
  const process = (_name: string, clock: HardProcess['clock']) => new HardProcess(clock);
  await HardAccount.use(
    { taskMs: 1, process },
    async (account) => {
      const start = account.coordinator.start.bind(account.coordinator);
      account.coordinator.start = async (jobId) => {
        const outcome = await start(jobId);
        if (outcome === 'started') started.push(jobId);
        return outcome;
      };
      const submit = async (by: HardProcess): Promise<void> => {
        const deps = by.wrap(account.deps(by), ['coordinator']);
        answered.push((await submitJob(deps, request)).jobId);
      };
      const hit = new HardProcess(account.clock, [ill]);
      first.places = hit.places;
      let second: Promise<unknown> = Promise.resolve();
      hit.onCall = (_place, call) => {
        if (call === at) second = submit(new HardProcess(account.clock)).catch(() => undefined);
        return Promise.resolve();
      };
      await Promise.race([submit(hit).catch(() => undefined), hit.died]);
      await second;
      await account.clock.sleep(durationMs(31 * 60_000));
      await submit(new HardProcess(account.clock)).catch((cause: unknown) => (error = cause));
    },
    async ({ stores }) => {
      recorded.push(...(await stores.jobs.list({ limit: 100 })).jobs.map(({ jobId }) => jobId));
    },
  );
  return { answered, recorded, started, error, places: first.places };
}

describe('a job that is submitted twice at once with one client token', () => {
  it.each(illKinds)('is one job, whatever befalls one of them at any call: %s', async (kind) => {
    for (let at = 1; ; at++) {
      const { places, ...end } = await submitted(at, { kind, call: at, ms: 90_000 });
      const place = places[at - 1];
      if (place === undefined) {
        expect(at).toBeGreaterThan(5);
        return;
      }
      const [jobId] = end.recorded;
      const rest = { recorded: [jobId], started: [jobId], error: undefined };
      expect({ place, ...end, answered: [...new Set(end.answered)] }).toEqual({
        place,
        ...rest,
        answered: [jobId],
      });
    }
  });
});
