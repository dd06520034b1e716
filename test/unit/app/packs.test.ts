import { describe, expect, it } from 'vitest';
import type { Ill } from '../../support/hard-process.ts';
import { type Hardship, hardJob, type HardOutcome } from '../../support/hard-jobs.ts';

const job = { taskMs: 200, lines: 24, totalSlots: 3 } as const;

/** Attempts that rode, by their heads. */
function packsIn({ verdict }: HardOutcome): ReadonlyMap<string, number> {
  const packs = new Map<string, number>();
  for (const { behind } of verdict?.launched ?? [])
    if (behind !== undefined) packs.set(behind, (packs.get(behind) ?? 0) + 1);
  return packs;
}

/** The head of the largest pack of the job where nothing goes wrong, and how often its worker calls anybody. */
async function carrier(): Promise<{ readonly head: string; readonly calls: number }> {
  const calm = await hardJob(job);
  expect(calm.complaints).toEqual([]);
  const [head, riders] = [...packsIn(calm)].toSorted((a, b) => b[1] - a[1])[0] ?? [];
  if (head === undefined || riders === undefined) throw new Error('nothing rode');
  expect(riders).toBeGreaterThanOrEqual(2);
  return { head: `${head} 1`, calls: calm.places.get(`${head} 1`)?.length ?? 0 };
}

/** Calls from the first to the last. */
const spread = (calls: number): readonly number[] => [2, Math.floor(calls / 2), calls - 1];

/** The output is exact, no attempt was worked on twice, and none was decided on without a failure before. */
async function endures(hardship: Partial<Hardship>): Promise<HardOutcome> {
  const outcome = await hardJob({ ...job, ...hardship });
  const { verdict, complaints } = outcome;
  const grave = complaints.filter((each) => !each.startsWith('gives up who was well'));
  expect({ grave, state: verdict?.job.state }).toEqual({ grave: [], state: 'succeeded' });
  expect(verdict?.unexplained).toEqual([]);
  expect(verdict?.workedTwice).toEqual([]);
  return outcome;
}

describe('a worker that takes up several attempts', () => {
  it('makes fewer launches than there are attempts', async () => {
    const { verdict } = await endures({});
    const behind = verdict?.launched.filter((each) => each.behind !== undefined).length ?? 0;
    expect(verdict?.launched).toHaveLength(26);
    expect(behind).toBeGreaterThanOrEqual(8);
  });

  it.each<Ill['kind']>(['freeze-before', 'freeze-after'])(
    'and freezes (%s), for long or for very long, runs nothing twice and loses nothing once it thaws',
    async (kind) => {
      const { head, calls } = await carrier();
      for (const call of spread(calls)) {
        for (const ms of [20_000, 90_000]) await endures({ ills: { [head]: [{ kind, call, ms }] } });
      }
    },
    300_000,
  );

  it.each([undefined, 1_000])(
    'and dies, which is told after %s ms or never, leaves those behind it to others',
    async (deathToldMs) => {
      const { head, calls } = await carrier();
      for (const call of spread(calls)) {
        const ill: Ill = { kind: 'dies', call, ms: 0 };
        await endures({
          ills: { [head]: [ill] },
          ...(deathToldMs === undefined ? {} : { deathToldMs }),
        });
      }
    },
    300_000,
  );

  it('and is delivered twice, or late, runs each once', async () => {
    await endures({ delivery: () => ({ afterMs: 300, againMs: 500 }) });
    await endures({ delivery: () => ({ afterMs: 300, againMs: 60_000 }) });
    await endures({ delivery: (id) => ({ afterMs: id.startsWith('tokenize/1') ? 45_000 : 300 }) });
  });
});
