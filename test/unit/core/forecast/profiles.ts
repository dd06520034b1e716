import type { JobProfile, RunTimes, StageProfile } from '../../../../src/core/forecast/job-profile.ts';

/** A stage all of whose attempts take `ms`, whatever their slot has run. */
export const steady = (
  ms: number,
  tasks: number,
  inputs: StageProfile['inputs'] = [],
  more: Partial<StageProfile> = {},
): StageProfile => ({
  name: `stage of ${ms}`,
  tasks,
  inputs,
  runs: [{ slots: 1, times: times({ later: [ms] }) }],
  queueMs: [],
  failureShare: 0,
  ...more,
});

export const times = (some: Partial<RunTimes>): RunTimes => ({ cold: [], first: [], later: [], ...some });

export const barrier = (stage: number): StageProfile['inputs'] => [{ stage, isBarrier: true }];
export const pairs = (stage: number): StageProfile['inputs'] => [{ stage, isBarrier: false }];

export const profile = (...stages: readonly StageProfile[]): JobProfile => ({ stages });
