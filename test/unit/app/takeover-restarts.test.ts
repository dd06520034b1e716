import { expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import { durationMs, type EpochMs, later } from '../../../src/contracts/units.ts';
import { workerMsOf } from '../../../src/core/estimate/progress-rate.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { attempt } from '../../support/job-states.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

/** A job of one task, whose attempts are at work when their host is ended, and whoever takes it over each time. */
async function restarts(count: number): Promise<{ system: ScriptedSystem; states: JobState[] }> {
  const system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.alloc(1_000, 'word\n'));
  const input = { s3: ['s3://data/in/'], splitBytes: 1_000 };
  const { jobId } = await submitJob(system, {
    spec: { name: 'words', stages: [{ name: 'map', operator: 'tokenize', inputs: [input] }] },
  });
  await planJob(system.deps, jobId);
  const space = { jobId, shards: 1 };
  const states: JobState[] = [];
  const opened = { kind: 'open-stage' as const, stage: 0 };
  let version = 0;
  for (let life = 0; life < count; life += 1) {
    const attemptId = attempt(`map/0/${life}`);
    const at = system.clock.now();
    const reason = life === 0 ? ('first' as const) : ('retry' as const);
    const launch = { kind: 'launch' as const, attemptId, reason };
    const decisions = life === 0 ? [opened, launch] : [launch];
    version += 1;
    await system.decisions.append(jobId, { version, epoch: version, at, decisions });
    await system.attempts.create(space, attemptId, at);
    await system.attempts.claim(space, attemptId, { node: 'n', zone: 'z', invocation: `i${life}` }, at);
    await system.clock.advance(1_000);
    const session = await enterJob(since(system, system.clock.now()), jobId, {
      owner: `life-${life}`,
      until: later(system.clock.now(), durationMs(600_000)),
    });
    states.push(session.state);
    version = session.version;
    await system.clock.advance(60_000);
  }
  return { system, states };
}

const since = ({ deps }: ScriptedSystem, workersSince: EpochMs): SchedulerDeps => ({
  ...deps,
  config: { ...deps.config, workersSince },
});

it('takes attempts of workers that ended with an earlier host for interrupted at once, and for no strike', async () => {
  const { states } = await restarts(5);
  const task = states.at(-1)?.stages[0]?.tasks[0];
  expect(task?.attempts.map(({ state }) => state)).toEqual(['lost', 'lost', 'lost', 'lost', 'lost']);
  expect(task?.attempts.map(({ failure }) => failure?.cause)).toEqual(Array(5).fill('interrupted'));
  expect(states.map(({ live }) => live.size)).toEqual([0, 0, 0, 0, 0]);
  expect(states.map(({ stages }) => stages[0]?.tasks[0]?.failures)).toEqual([0, 0, 0, 0, 0]);
});

it('counts no time of workers while their host was down', async () => {
  const { states } = await restarts(3);
  const ran = states.at(-1)?.stages[0]?.tasks[0]?.attempts ?? [];
  // Each had claimed itself a second before its host began again, and told nothing since.
  expect(ran.map(({ claimedAt, endedAt }) => (endedAt ?? 0) - (claimedAt ?? 0))).toEqual([0, 0, 0]);
  const now = later(ran.at(-1)?.seenAt ?? (0 as EpochMs), durationMs(3_600_000));
  expect(ran.map((each) => workerMsOf(each, now))).toEqual([0, 0, 0]);
});
