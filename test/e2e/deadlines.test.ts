import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readForecast, type StoredForecast } from '../../src/contracts/forecast.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { forecastKey } from '../../src/contracts/keys.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import type { ToldAllocation } from '../../src/contracts/api.ts';
import { mostAtOnce } from '../../src/core/forecast/task-times.ts';
import { deadlineMet } from '../../src/report/job-table.ts';
import { timelinePlot } from '../../src/report/timeline.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { parseInjection } from '../../src/local/inject/injection.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingHeld } from '../support/nothing-left.ts';

/** Runs of the recurring job that must meet its deadline: twenty where it is asked for, which takes many minutes. */
const runs = Number(process.env['OUTRIDER_DEADLINE_RUNS'] ?? '2');
const slots = 8;
const taskS = 1;
const tasks = 12;
/** Of the job whose deadline is moved. */
const longTasks = 36;
/** Ample: alone the job takes some seconds. */
const deadlineS = 60;
/** Synthesis takes its time on a busy machine. */
const startMs = 400_000;
const testMs = 300_000 + runs * 90_000;

const text = Buffer.from(Array.from({ length: 600 }, (_, line) => `${(line * 7919) % 600} line\n`).join(''));

let system: EmbeddedSystem;
let input: string;

beforeAll(async () => {
  system = await EmbeddedSystem.start({
    slots,
    injection: parseInjection('slow=4x1'),
    parameters: { [ParameterName.tickMs]: '250', [ParameterName.heartbeatMs]: '1000' },
  });
  input = await system.put('lines', text);
}, startMs);

afterAll(() => system.stop());

/** A sort whose tasks take a second each. */
const job = (name: string, changes: Partial<JobSpecInput> = {}): JobSpecInput => ({
  name,
  policy: 'none',
  stages: [
    {
      name: 'slow',
      operator: 'exec',
      options: { command: ['sh', '-c', `sleep ${taskS}; cat`] },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / tasks) }],
      partitions: 2,
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'slow', pattern: 'all-to-all' }] },
  ],
  ...changes,
});

async function expectWell(ended: JobRecord): Promise<void> {
  expect(ended).toMatchObject({ state: 'succeeded' });
  expect(coreutils('sort', [], await system.output(ended)).equals(coreutils('sort', [], text))).toBe(true);
}

/** What was learned of a name, with a table of so many runs. */
const learned = (name: string, ofRuns: number): Promise<StoredForecast> =>
  system.until(`the forecast of ${name}`, async () => {
    const body = await system.objects
      .readAll({ bucket: system.bucket, key: forecastKey(name) })
      .catch(() => undefined);
    const forecast = body === undefined ? undefined : readForecast(Buffer.from(body).toString()).forecast;
    return forecast?.table?.ofRuns === ofRuns ? forecast : undefined;
  });

/** What a job asked to be its own, in the order of its log. */
const asked = async (jobId: string): Promise<readonly ToldAllocation[]> =>
  (await system.api.allocations(jobId)).allocations;

/** Most attempts of a job at once, of those that began in a span of time. */
async function mostBetween(jobId: string, from: number, to: number): Promise<number> {
  const { attempts } = await system.api.attempts(jobId);
  return mostAtOnce(attempts.filter(({ claimedAt = 0 }) => claimedAt >= from && claimedAt < to));
}

describe('a recurring job', () => {
  it(
    'is learned from when it ends, and forecast by a function of its own',
    async () => {
      await expectWell(await system.ended(await system.submit(job('learned'))));
      const first = await learned('learned', 1);
      expect(first.profile.stages.map((stage) => [stage.name, stage.tasks])).toEqual([
        ['slow', tasks],
        ['merge', 2],
      ]);
      for (const time of Object.values(first.profile.stages[0]?.runs[0]?.times ?? {}).flat())
        expect(time).toBeGreaterThanOrEqual(taskS * 1_000);
      expect(first.table?.slots).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      expect(first.inputBytes).toBe(text.length);
      await expectWell(await system.ended(await system.submit(job('learned'))));
      expect(await learned('learned', 2)).toMatchObject({ runs: 2 });
      await expectNothingHeld(system, 15_000);
    },
    testMs,
  );

  it(
    'meets its deadline in each run, while another competes and a straggler is injected',
    async () => {
      await expectWell(await system.ended(await system.submit(job('recurring'))));
      await learned('recurring', 1);
      for (let run = 0; run < runs; run++) {
        const rival = await system.submit(job(`rival-${run}`, { weight: 4 }));
        const jobId = await system.submit(job('recurring', { deadline: `${deadlineS}s` }));
        const ended = await system.ended(jobId);
        await expectWell(ended);
        expect(deadlineMet(ended)).toBe(true);
        expect(ended.forecast).toMatchObject({ basis: 'profile' });
        const [first] = await asked(jobId);
        expect(first).toMatchObject({ reason: 'admitted' });
        expect(first?.slots).toBeGreaterThan(0);
        await expectWell(await system.ended(rival));
      }
      expect(await system.usedSlots()).toBe(0);
    },
    testMs,
  );

  it(
    'asks for more when its deadline is cut on its way, and gives slots back when it is tripled',
    async () => {
      // Only slots of its own: with those to spare it would be over before anybody could change his mind.
      const own = { policyConfig: { jockey: { spareSlots: false } } };
      const many = job('moved', own);
      const [slow] = many.stages;
      const long = {
        ...many,
        stages: [
          { ...slow, inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / longTasks) }] },
          ...many.stages.slice(1),
        ],
      } as JobSpecInput;
      await expectWell(await system.ended(await system.submit(long)));
      await learned('moved', 1);
      const jobId = await system.submit({ ...long, deadline: `${String(longTasks * 3)}s` });
      const first = await system.until('the first slots of its own', async () => (await asked(jobId))[0]);
      const changed = async (deadline: string, isRight: (slots: number, before: number) => boolean) => {
        const before = (await asked(jobId)).at(-1)?.slots ?? 0;
        await system.api.setDeadline(jobId, deadline);
        return system.until(`slots for ${deadline}`, async () => {
          const last = (await asked(jobId)).at(-1);
          return last !== undefined && isRight(last.slots, before) ? last : undefined;
        });
      };
      await system.until(
        'its first results',
        async () => ((await system.api.job(jobId)).stages[0]?.done ?? 0) > 2 || undefined,
      );
      const cut = await changed(`${String(Math.ceil(longTasks / 3))}s`, (slots, before) => slots > before);
      await system.until(
        'results after that',
        async () => ((await system.api.job(jobId)).stages[0]?.done ?? 0) > longTasks / 2 || undefined,
      );
      const tripled = await changed(`${String(longTasks * 9)}s`, (slots, before) => slots < before);
      const ended = await system.ended(jobId);
      await expectWell(ended);
      expect(deadlineMet(ended)).toBe(true);
      expect(cut.reason).toBe('deadline-changed');
      const [before, between] = [
        await mostBetween(jobId, first.at, cut.at),
        await mostBetween(jobId, cut.at, tripled.at),
      ];
      expect(between).toBeGreaterThan(before);
      const { attempts } = await system.api.attempts(jobId);
      expect(attempts.filter(({ state }) => state !== 'done').length).toBe(0);
      const { series } = timelinePlot(ended, attempts, { allocations: await asked(jobId), now: 0 });
      expect(series.map(({ name }) => name)).toEqual(['attempts that ran', 'asked for', 'oracle']);
    },
    testMs,
  );
});
