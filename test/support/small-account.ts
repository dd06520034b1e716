import type { ResidentDeps } from '../../src/app/resident-deps.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { epochMs } from '../../src/contracts/units.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { type AccountOptions, BusyAccount } from './busy-account.ts';

/** A job of one task over the one object of `account`. */
export const oneTask = (name: string): JobSpecInput => ({
  name,
  stages: [{ name: 'map', operator: 'grep', options: { pattern: 'a' }, inputs: [{ s3: ['s3://data/in/'] }] }],
});

/** A busy account with room to spare, whose data bucket holds one small object. */
export async function account(options: Partial<AccountOptions> = {}): Promise<BusyAccount> {
  const made = new BusyAccount({
    environments: 100,
    totalSlots: 50,
    taskMs: 5_000,
    seed: 'residents',
    ...options,
  });
  await made.system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  return made;
}

/** Submits so many jobs of one task at once; the first asks for so many slots of its own. */
export async function submit(
  made: BusyAccount,
  jobs: number,
  { guaranteedSlots }: { readonly guaranteedSlots?: number } = {},
): Promise<readonly JobId[]> {
  const ids = Promise.all(
    Array.from({ length: jobs }, (_, index) => {
      const own = index === 0 && guaranteedSlots !== undefined ? { guaranteedSlots } : {};
      return made.submit({ ...oneTask(`job-${index}`), ...own }, `t-${index}`);
    }),
  );
  await made.system.clock.advance(1_000);
  return ids;
}

/** Time for a process that dies: it sleeps for ever from then on. */
export function deadAfter({ clock }: ResidentDeps, death: Promise<unknown>): Clock {
  const state = { isDead: false };
  void death.then(() => (state.isDead = true));
  return {
    now: () => clock.now(),
    sleep: async (length, signal) => {
      await clock.sleep(length, signal);
      if (state.isDead) await new Promise(() => undefined);
    },
  };
}

/** A clock that is ahead by so much, or behind where it is negative. */
export const skewed = (clock: Clock, offMs: number): Clock => ({
  now: () => epochMs(clock.now() + offMs),
  sleep: (length, signal) => clock.sleep(length, signal),
});
