import { describe, expect, it } from 'vitest';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import type { JobSpec } from '../../../src/contracts/job-spec.ts';
import type { StagePlan } from '../../../src/contracts/plan.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { applyDecisions } from '../../../src/core/decide-tick.ts';
import { billedMsOf, workerMsOf } from '../../../src/core/estimate/progress-rate.ts';
import { applyAttempt, applyResult, createJobState } from '../../../src/core/model/job-state.ts';
import { loseOutput } from '../../../src/core/model/lost-outputs.ts';
import { attempt, attemptRecord, resultOf } from '../../support/job-states.ts';
import { checkKeepers, keepWithWorkers } from '../../../src/core/model/kept-outputs.ts';

const spec = (kinds: readonly ('lambda' | 'fargate')[], storage = 'worker-local'): JobSpec =>
  jobSpecSchema.parse({
    name: 'job',
    storage,
    stages: kinds.map((kind, index) => ({
      name: `s${index}`,
      operator: 'tokenize',
      worker: { kind },
      inputs:
        index === 0 ? [{ s3: ['s3://bucket/in'] }] : [{ stage: `s${index - 1}`, pattern: 'all-to-all' }],
    })),
  });

const planned = (tasks: readonly number[]): StagePlan[] =>
  tasks.map((count, index) => ({
    description: { tasks: count, output: index === tasks.length - 1 ? 'final' : 'sorted' },
  })) as unknown as StagePlan[];

const keptOf = (stages: readonly StagePlan[]): unknown[] =>
  stages.map(({ description }) => description.keptTasks);

describe('a job that asks for the tier worker-local', () => {
  it('is refused by the field where the deployment has no Fargate, or a stage is on Lambda', () => {
    const onFargate = spec(['fargate', 'fargate']);
    expect(() => {
      checkKeepers(onFargate, true);
    }).not.toThrow();
    expect(() => {
      checkKeepers(onFargate, false);
    }).toThrow(/^storage must be "standard" or "zonal": .*-c fargate=on/);
    expect(() => {
      checkKeepers(spec(['fargate', 'lambda']), true);
    }).toThrow(/^stages\[1\]\.worker\.kind must be "fargate" where storage is "worker-local"/);
    expect(() => {
      checkKeepers(spec(['lambda'], 'standard'), false);
    }).not.toThrow();
  });

  it('is refused when it is planned, too: the deployment may have changed', () => {
    expect(() => keepWithWorkers(spec(['lambda', 'fargate']), planned([2, 1]))).toThrow(/stages\[0\]/);
  });

  it('has as many tasks leave outputs with their workers as there are slots, and none of the last stage', () => {
    const three = spec(['fargate', 'fargate', 'fargate']);
    expect(keptOf(keepWithWorkers(three, planned([4, 3, 2]), 100))).toEqual([4, 3, undefined]);
    expect(keptOf(keepWithWorkers(three, planned([4, 3, 2]), 5))).toEqual([4, 1, undefined]);
    expect(keptOf(keepWithWorkers(three, planned([9, 3, 2]), 5))).toEqual([5, undefined, undefined]);
    const standard = spec(['fargate', 'fargate', 'fargate'], 'standard');
    expect(keptOf(keepWithWorkers(standard, planned([4, 3, 2]), 5))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('a worker that keeps its output', () => {
  const at = epochMs;

  it('is billed until the end of its job, or the loss of the output', () => {
    const state = createJobState([
      { name: 'map', tasks: 2, upstream: [], sourceBytes: [1, 1] },
      { name: 'reduce', tasks: 1, upstream: [0], sourceBytes: [0] },
    ]);
    const ids = [attempt('map/0/0'), attempt('map/1/0')];
    const launches = ids.map((attemptId) => ({
      kind: 'launch' as const,
      attemptId,
      reason: 'first' as const,
    }));
    applyDecisions(state, launches, { now: at(0), openStage: () => undefined });
    for (const id of ids) applyAttempt(state, attemptRecord(id, 'done', 5_000), at(5_000));
    applyResult(state, { ...resultOf('map/0/0', 5_000), worker: '10.0.0.7:7843' }, at(5_000));
    applyResult(state, resultOf('map/1/0', 5_000), at(5_000));
    const billed = (): unknown[] =>
      [...state.attempts.values()].map((each) => billedMsOf(each, at(60_000 + (each.claimedAt ?? 0))));
    const [first, second] = [...state.attempts.values()].map((each) => workerMsOf(each, at(60_000)));
    expect(billed()).toEqual([60_000, second]);
    loseOutput(state, attempt('map/0/0'));
    expect(billed()).toEqual([first, second]);
  });

  it.each([
    ['is', [], 59_000],
    ['is not, where that output is lost,', ['map/0/0'], 4_000],
  ] as const)('%s billed so also to who takes the job over', (_, lost, expected) => {
    const state = createJobState([
      { name: 'map', tasks: 1, upstream: [], sourceBytes: [1] },
      { name: 'reduce', tasks: 1, upstream: [0], sourceBytes: [0] },
    ]);
    const id = attempt('map/0/0');
    const result = { ...resultOf(id, 5_000), worker: '10.0.0.7:7843' };
    const record = attemptRecord(id, 'done', 5_000, { claimedAt: at(1_000) });
    // Results, the log by them, and then results and records once more.
    applyResult(state, result, at(50_000));
    const launch = { kind: 'launch' as const, attemptId: id, reason: 'first' as const };
    applyDecisions(state, [launch], { now: at(0), openStage: () => undefined });
    for (const each of lost) loseOutput(state, attempt(each));
    applyResult(state, result, at(50_000));
    applyAttempt(state, record, at(50_000));
    expect([...state.attempts.values()].map((each) => billedMsOf(each, at(60_000)))).toEqual([expected]);
  });

  it.each([
    ['behind', -3_600_000, 60_000],
    ['ahead', 3_600_000, 59_000],
    ['right', 0, 59_500],
  ])('is billed for its own time where its clock is %s', (_, aheadMs, expected) => {
    const hour = 3_600_000;
    const state = createJobState([
      { name: 'map', tasks: 1, upstream: [], sourceBytes: [1] },
      { name: 'reduce', tasks: 1, upstream: [0], sourceBytes: [0] },
    ]);
    const id = attempt('map/0/0');
    const launch = { kind: 'launch' as const, attemptId: id, reason: 'first' as const };
    applyDecisions(state, [launch], { now: at(hour), openStage: () => undefined });
    // Claimed half a second after its launch, it takes ten seconds, and its end is seen half a second later.
    const claimedAt = at(hour + aheadMs + 500);
    const record = attemptRecord(id, 'done', hour + aheadMs + 10_500, { claimedAt });
    applyAttempt(state, record, at(hour + 11_000));
    applyResult(state, { ...resultOf(id, 10_500), worker: '10.0.0.7:7843' }, at(hour + 11_000));
    const [view] = state.attempts.values();
    expect(view && billedMsOf(view, at(hour + 60_000))).toBe(expected);
  });
});
