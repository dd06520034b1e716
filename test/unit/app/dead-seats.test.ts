import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../src/contracts/units.ts';
import type { BusyAccount } from '../../support/busy-account.ts';
import { account, deadAfter, oneTask, submit } from '../../support/small-account.ts';

const minute = 60_000;
const allSeats = async ({ roster }: BusyAccount) =>
  (await roster.view(1)).seats.map(({ number, resident }) => ({ number, resident }));

/** One job more, and how long it took until it ended. */
async function oneMore(made: BusyAccount, name: string): Promise<{ tookMs: number; transitions: number }> {
  const { counts, system } = made;
  const before = { at: system.clock.now(), transitions: counts.transitions };
  void made.submit(oneTask(name), name);
  await made.untilEnded(counts.executions.length + 1, 2 * minute);
  return { tookMs: system.clock.now() - before.at, transitions: counts.transitions - before.transitions };
}

/** A resident that died in a seat a day ago. */
const dieIn = ({ roster, system }: BusyAccount, number: number) =>
  roster.sit(
    { number, resident: `dead-${number}`, until: epochMs(system.clock.now() - 86_400_000) },
    undefined,
  );

describe('the seat of a resident that died', () => {
  it('is emptied by whoever follows it, though it is the second: nobody after that takes it for served', async () => {
    const death = Promise.withResolvers<unknown>();
    const made = await account({
      residents: 3,
      taskMs: 6_000,
      killed: (number) => (number === 17 ? death.promise : undefined),
      wrap: (deps, number) => (number === 17 ? { ...deps, clock: deadAfter(deps, death.promise) } : deps),
    });
    await submit(made, 16);
    void made.submit(oneTask('job-16'), 't-16');
    await made.system.clock.advance(4_000);
    expect(await allSeats(made)).toMatchObject([{ resident: 'request-1' }, { resident: 'request-17' }]);
    death.resolve(undefined);
    made.seated.delete('request-17');
    await made.untilEnded(17, 2 * minute);
    await made.system.clock.advance(minute);
    expect(await allSeats(made)).toEqual([{ number: 0 }, { number: 1 }]);
    const { tookMs, transitions } = await oneMore(made, 'next');
    expect(tookMs).toBeLessThan(20_000);
    expect(transitions).toBe(3);
    made.counts.mostResidents = 0;
    for (let job = 0; job < 40; job++) void made.submit(oneTask(`later-${job}`), `later-${job}`);
    await made.untilEnded(58, 2 * minute);
    expect(made.counts.mostResidents).toBe(3);
  });

  it.each([0, 1, 3, 7])('costs one job its patience, and none after it: seat %i of 4', async (number) => {
    const made = await account();
    await dieIn(made, number);
    await oneMore(made, 'first');
    expect((await allSeats(made)).filter(({ resident }) => resident !== undefined)).toEqual([]);
    const { tookMs, transitions } = await oneMore(made, 'second');
    expect(tookMs).toBeLessThan(20_000);
    expect(transitions).toBe(3);
  });

  it('is emptied under load, also where residents may be fewer now, so that all that may be are there', async () => {
    const made = await account({ environments: 1_000, totalSlots: 500, taskMs: minute });
    for (const number of [1, 2, 3, 9]) await dieIn(made, number);
    await submit(made, 40);
    await made.system.clock.advance(20_000);
    for (let job = 0; job < 24; job++) void made.submit(oneTask(`late-${job}`), `late-${job}`);
    await made.untilEnded(64, 5 * minute);
    expect(made.counts.mostResidents).toBe(4);
    await made.system.clock.advance(minute);
    expect((await allSeats(made)).filter(({ resident }) => resident !== undefined)).toEqual([]);
  });
});
