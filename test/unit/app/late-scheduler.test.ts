import { describe, expect, it } from 'vitest';
import { failJob } from '../../../src/app/fail-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { freezeEverywhere, type FreezingProcess } from '../../support/freezing.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

interface World {
  readonly system: ScriptedSystem;
  readonly jobId: JobId;
}

async function planned(): Promise<World> {
  const system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two'));
  const { jobId } = await submitJob(system, {
    spec: {
      name: 'words',
      policy: 'none',
      stages: [
        { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }] },
        { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
      ],
    },
  });
  await planJob(system.deps, jobId);
  return { system, jobId };
}

/** Virtual time passes, also while the process is frozen, until the work is done. */
async function whileTimePasses(system: ScriptedSystem, work: Promise<unknown>): Promise<void> {
  const state = { isDone: false };
  const done = work.then(
    () => void (state.isDone = true),
    () => void (state.isDone = true),
  );
  for (let step = 0; step < 20_000 && !state.isDone; step++) await system.clock.advance(50);
  await done;
}

const ports = ['jobs', 'objects', 'attempts', 'ledger', 'leases', 'decisions', 'launcher'] as const;

function schedule({ system, jobId }: World, process: FreezingProcess): Promise<void> {
  const residency = { owner: 'frozen', until: later(system.clock.now(), durationMs(1e9)) };
  return whileTimePasses(system, runScheduler(process.wrap(system.deps, ports), jobId, residency));
}

describe('a scheduler that froze', () => {
  it('leaves nothing behind where its job failed meanwhile, whatever it was about to do', async () => {
    const places = await freezeEverywhere<World>({
      make: planned,
      run: schedule,
      meanwhile: ({ system, jobId }) =>
        failJob(system.deps, jobId, { name: 'States.Timeout', message: 'late' }, durationMs(0)),
      fate: 'thaws',
      check: async ({ system, jobId }, where) => {
        const keys = [];
        for await (const { key } of system.objects.list({ bucket: 'data', key: '' })) keys.push(key);
        expect(keys, where).toEqual(['in/a']);
        expect((await system.ledger.view()).usedSlots, where).toBe(0);
        const { attempts } = await system.attempts.all({ jobId, shards: 1 });
        const waiting = attempts.filter(({ state, order }) => state === 'launched' && order === 'continue');
        expect(waiting, where).toEqual([]);
      },
    });
    for (const name of [
      'decisions.append',
      'attempts.create',
      'launcher.launch',
      'objects.write',
      'ledger.resize',
    ])
      expect(places).toContain(`before ${name}`);
  });
});
