import { beforeEach, expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { runTick } from '../../../src/app/tick-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { attempt } from '../../support/job-states.ts';
import { launch, Predecessor } from '../../support/predecessor.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

let system: ScriptedSystem;
let before: Predecessor;
let jobId: JobId;

/** Two maps are done, as many reduce tasks as the job has slots were decided on, and the output of the first map is lost. */
beforeEach(async () => {
  system = new ScriptedSystem();
  before = await Predecessor.ofWords(system, 2);
  ({ jobId } = before);
  await before.decide({ kind: 'open-stage', stage: 0 });
  await before.decide(launch('map/0/0'), launch('map/1/0'));
  for (const id of ['map/0/0', 'map/1/0']) {
    const space = { jobId, shards: 1 };
    await system.attempts.create(space, attempt(id), system.clock.now());
    await system.attempts.claim(space, attempt(id), { node: 'n', zone: 'z' }, system.clock.now());
    await before.commit(id, 2);
    const done = { state: 'done', progress: progress(100) } as const;
    await system.attempts.end(space, attempt(id), done, system.clock.now());
  }
  await before.decide({ kind: 'open-stage', stage: 1 });
  await before.decide(launch('reduce/0/0'), launch('reduce/1/0'));
  await before.decide({ kind: 'lose-output', attemptId: attempt('map/0/0'), how: 'missing' });
  system.onLaunch = () => Promise.resolve('accepted');
});

/** What a scheduler with two slots that takes the job over decides within so long. */
async function afterTakeover(ms: number): Promise<readonly string[]> {
  const deps = { ...system.deps, config: { ...system.deps.config, totalSlots: 2 } };
  const until = later(system.clock.now(), durationMs(600_000));
  const session = await enterJob(deps, jobId, { owner: 'next', until });
  const decided: string[] = [];
  for (let passed = 0; passed <= ms; passed += 1_000) {
    const { decisions } = await runTick(deps, session);
    for (const each of decisions)
      if (each.kind === 'launch' || each.kind === 'lose')
        decided.push(`${each.kind} ${each.attemptId} ${each.reason}`);
    await system.clock.advance(1_000);
  }
  return decided;
}

it('makes a lost output again although launches that wait for it were decided on for all slots', async () => {
  expect(await afterTakeover(0)).toEqual(['launch map/0/1 recompute']);
  await before.commit('map/0/1', 2, attempt('map/0/0'));
  const until = later(system.clock.now(), durationMs(600_000));
  const session = await enterJob(system.deps, jobId, { owner: 'third', until, replaces: 'next' });
  const launched: string[] = [];
  for (let ticks = 0; ticks < 4; ticks++) {
    const { decisions } = await runTick(system.deps, session);
    for (const each of decisions) if (each.kind === 'launch') launched.push(each.attemptId);
    await system.clock.advance(1_000);
  }
  expect(launched).toEqual(['reduce/0/0', 'reduce/1/0']);
});

it('waits for launches that may have been made no longer than for others', async () => {
  for (const id of ['reduce/0/0', 'reduce/1/0'])
    await system.attempts.create({ jobId, shards: 1 }, attempt(id), system.clock.now());
  expect(await afterTakeover(8_000)).toEqual([
    'lose reduce/0/0 unclaimed',
    'lose reduce/1/0 unclaimed',
    'launch map/0/1 recompute',
  ]);
});
