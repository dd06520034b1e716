import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { listJournal } from '../../src/app/list-journal.ts';
import { replayJob } from '../../src/app/replay-job.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { arbIllsOf, arbLossUpTo } from '../support/arb-hardships.ts';
import { draws } from '../support/draws.ts';
import { HardAccount } from '../support/hard-account.ts';
import { HardProcess, type Ill } from '../support/hard-process.ts';
import { complaintsOf, lossyJob } from '../support/lossy-jobs.ts';
import { storesInMemory } from '../support/record-stores.ts';

/** Two rows in three have one key. */
const rows = Array.from({ length: 90 }, (_, row) => [
  row % 3 === 0 ? `key ${row % 7}` : 'hot',
  `value ${row}`,
]);
const input = `k,v\n${rows.map((row) => `${row.join(',')}\n`).join('')}`;
/** The join of the table with itself, by definition: all pairs of rows whose keys are equal. */
const expected = rows
  .flatMap(([key = '', value = '']) =>
    rows.flatMap(([other, right = '']) => (other === key ? [`${key},${value},${right}`] : [])),
  )
  .toSorted();

const join: JobSpecInput = {
  ...builtinJob('join', {
    inputs: ['s3://input/a'],
    right: ['s3://input/a'],
    ...{ format: 'csv', leftKey: 'k', rightKey: 'k', partitions: 3, splitBytes: 220 },
  }),
  policyConfig: { split: { factor: 1, leastGainMs: 0 } },
};

/** The same with a stage that reads the join: its tasks were added when others had counted on those of the plan. */
const joinRead: JobSpecInput = {
  ...join,
  stages: [
    ...join.stages.map((stage) => (stage.name === 'join' ? { ...stage, partitions: 2 } : stage)),
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'join', pattern: 'all-to-all' }] },
  ],
};

function expectJoined(output: string): void {
  const lines = output.split('\n').slice(0, -1);
  expect(lines.toSorted()).toEqual([...expected, 'k,v,v_right'].toSorted());
}

const arbLosses = fc.array(arbLossUpTo(26), { maxLength: 4 });
/** Tasks 3 and up are those that splits have added. */
const workers = ['left/1/0 1', 'join/0/0 1', 'join/1/0 1', 'join/2/0 1', 'join/3/0 1', 'join/4/0 1'];
const arbIlls = arbIllsOf(workers);
const arbSpec: fc.Arbitrary<JobSpecInput> = fc
  .tuple(fc.constantFrom(join, joinRead), fc.constantFrom('none', 'outrider', 'late', 'dolly'))
  .map(([spec, policy]) => ({ ...spec, policy }));

describe('a join with split partitions, under faults', () => {
  it('has every row once whatever is lost, dies, freezes, or is copied', async () => {
    await fc.assert(
      fc.asyncProperty(arbLosses, arbIlls, arbSpec, async (losses, ills, spec) => {
        const outcome = await lossyJob({ spec, input, losses, ills });
        expect(complaintsOf(outcome)).toEqual([]);
        expectJoined(outcome.output);
        const splits = outcome.decisions.flatMap((each) =>
          each.kind === 'open-stage' ? [...(each.splits ?? [])] : [],
        );
        expect(splits.length).toBeGreaterThan(0);
      }),
      { numRuns: draws(40) },
    );
  }, 600_000);

  it('is decided again from its journal, byte for byte, whoever of its schedulers died', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 330 }),
        fc.constantFrom('dies' as const, 'freeze-after' as const),
        fc.constantFrom(join, joinRead),
        async (call, kind, spec) => {
          const stores = storesInMemory();
          const { jobs, journals } = stores;
          if (journals === undefined) throw new Error('no journals');
          const ills: readonly Ill[] = [{ kind, call, ms: 60_000 }];
          const process = (name: string, clock: ConstructorParameters<typeof HardProcess>[0]): HardProcess =>
            new HardProcess(clock, name === 'scheduler 1' ? ills : []);
          let done: JobId | undefined;
          await HardAccount.use(
            { stores, taskMs: 5_000, deathToldMs: 500, process },
            async (account) => {
              await account.objects.write({ bucket: 'input', key: 'a' }, Buffer.from(input));
              return account.run({ ...spec, policy: 'outrider' });
            },
            async (_account, jobId) => {
              done = jobId;
              const { state, stages = [] } = (await jobs.load(jobId)) ?? {};
              expect(state).toBe('succeeded');
              expect(stages.find(({ name }) => name === 'join')?.tasks).toBeGreaterThan(3);
            },
          );
          if (done === undefined) throw new Error('the job came to nothing');
          const jobId = done;
          const report = await replayJob((cursor) => listJournal({ jobs, journals }, jobId, { cursor }));
          expect(report.firstDifference).toBeUndefined();
          expect(report.reproduced).toBe(report.ticks);
        },
      ),
      {
        numRuns: draws(20),
        // Dies when the stage that reads the join is open: the log tells of the added tasks after results of theirs were read.
        examples: [220, 240, 260, 280, 300].map((call) => [call, 'dies', joinRead]),
      },
    );
  }, 600_000);
});
