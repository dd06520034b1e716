import { describe, expect, it } from 'vitest';
import type { Ill } from '../support/hard-process.ts';
import { type Hardship, hardJob } from '../support/hard-jobs.ts';

const minute = 60_000;
/** Beyond the lease of a job, the patience with a silent worker and that of the state machine; and beyond any launch's. */
const freezesMs = [90_000, 30 * minute];
/** More calls than any process of these jobs makes. */
const mostCalls = 1_000;

/**
 * Has `who` meet with an ill at each of its calls in turn, in a run of its own each time, until it runs through before
 * the call; answers where it was.
 */
async function everywhere(
  who: string,
  illAt: (call: number) => Omit<Ill, 'call'>,
  hardship: Hardship,
): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  for (let call = 1; call <= mostCalls; call++) {
    const ill = { ...illAt(call), call };
    const { complaints, places } = await hardJob({ ...hardship, ills: { [who]: [ill] } });
    const made = places.get(who) ?? [];
    expect({ ill, place: made[call - 1], complaints }).toEqual({
      ill,
      place: made[call - 1],
      complaints: [],
    });
    if (made.length < call) return seen;
    seen.add(made[call - 1] ?? '');
  }
  throw new Error(`${who} makes no end of calls`);
}

describe.each(freezesMs)('a process that freezes for %i ms between any two of its calls', (ms) => {
  it.each(['freeze-before', 'freeze-after'] as const)(
    'and is a scheduler (%s) leaves every task launched once, and the output exact',
    async (kind) => {
      const seen = await everywhere('scheduler 1', () => ({ kind, ms }), { taskMs: 3_000 });
      for (const place of ['decisions.append', 'attempts.create', 'launcher.launch', 'attempts.clear'])
        expect([...seen]).toContain(place);
      expect([...seen]).toContain('answers.succeed');
    },
    600_000,
  );

  it.each(['tokenize/0/0 1', 'count/0/0 1', 'plan 1', 'finish 1'])(
    'and is %s leaves the output exact, and no launch without a reason',
    async (who) => {
      const kind = (call: number): Ill['kind'] => (call % 2 === 0 ? 'freeze-before' : 'freeze-after');
      const seen = await everywhere(who, (call) => ({ kind: kind(call), ms }), { taskMs: 20_000 });
      expect(seen.size).toBeGreaterThanOrEqual(5);
    },
    600_000,
  );
});

describe('a process that dies before any of its calls', () => {
  it.each(['scheduler 1', 'tokenize/0/0 1', 'count/0/0 1', 'plan 1', 'finish 1'])(
    'and is %s leaves the output exact, and no launch without a reason',
    async (who) => {
      const hardship = { taskMs: 5_000, deathToldMs: 500 };
      const seen = await everywhere(who, () => ({ kind: 'dies', ms: 0 }), hardship);
      expect(seen.size).toBeGreaterThanOrEqual(5);
    },
    600_000,
  );
});
