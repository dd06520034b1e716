import { expect, it } from 'vitest';
import { MemoryCapacityStore } from '../../../src/adapters/memory/memory-capacity-store.ts';
import { RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { enterJob } from '../../../src/app/enter-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import { SharedRoom } from '../../../src/app/shared-room.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { runTick } from '../../../src/app/tick-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, epochMs, later } from '../../../src/contracts/units.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const other = 'other-000000000000' as JobId;
const rival = 'rival-000000000000' as JobId;

/** A job of twenty tasks behind Lambda's queue, on forty slots of which a rival elsewhere leaves it so many, once launched. */
async function launched(slotsLeft: number, spec: { readonly guaranteedSlots?: number } = {}) {
  const system = new ScriptedSystem();
  const store = new MemoryCapacityStore();
  const room = new SharedRoom();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one '.repeat(20)));
  const slots = 40 - slotsLeft;
  const said = { wanted: slots, weight: 1, since: epochMs(0), beat: 1, epoch: 1 };
  await store.tell(rival, undefined, { ...said, slots, held: slots, guaranteed: slots });
  const ledger = new RuledCapacityLedger(store);
  const deps: SchedulerDeps = {
    ...{ ...system.deps, ledger, room },
    launcher: { ...system.deps.launcher, terms: () => ({ waits: true, takesPacks: false }) },
    config: { ...system.deps.config, totalSlots: 40 },
  };
  system.onLaunch = () => Promise.resolve('accepted');
  const stages = [{ name: 'map', operator: 'grep', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }] }];
  const { jobId } = await submitJob(system, { spec: { name: 'words', stages, ...spec } });
  await planJob(system, jobId);
  // Another job of this process runs eight, so that there is room for those and four more that are tried.
  room.enter(other, 8, system.clock.now());
  const until = later(system.clock.now(), durationMs(60_000));
  const session = await enterJob(deps, jobId, { owner: 'first', until });
  // The stage opens, and is launched.
  for (let tick = 0; tick < 2; tick++) {
    await system.clock.advance(100);
    await runTick(deps, session);
  }
  /** Launches that the other may make, of nine that it owes. */
  const leftToOther = (): number =>
    room.see(other, {
      ...{ now: system.clock.now(), running: 8, starting: 0, late: 0, held: 0, owed: 9 },
      ...{ turnedLate: 0, claimLagsMs: [], throttled: 0 },
    });
  return { session, ledger, jobId, leftToOther };
}

it('leaves to other jobs the room for which a job has no slots', async () => {
  const { session, leftToOther } = await launched(1);
  expect(session.state.live.size).toBe(1);
  // Of twelve places one is used beside its eight.
  expect(leftToOther()).toBe(3);
});

it('keeps a job its half of the room where it has slots for it', async () => {
  const { session, leftToOther } = await launched(40);
  expect(session.state.live.size).toBe(4);
  expect(leftToOther()).toBe(0);
});

it('asks for the slots of its part of the room while others use more than theirs', async () => {
  const { session, ledger, jobId } = await launched(40);
  // Four may begin; six are its half of twelve.
  expect((await ledger.view()).grants[jobId]?.slots).toBe(6);
  expect(session.grant).toBe(6);
});

it('has the room for its guaranteed slots once they are its own', async () => {
  const { ledger, jobId } = await launched(40, { guaranteedSlots: 10 });
  expect((await ledger.view()).grants[jobId]).toMatchObject({ guaranteed: 10, slots: 10 });
});
