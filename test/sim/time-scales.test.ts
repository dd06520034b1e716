import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { runOne } from './scenarios.ts';

/** The stage of a fixture with all its times, and those of its host, so many times as long. */
function scaled(name: string, policy: PolicyName, times: number): ScenarioInput {
  const path = new URL(`../fixtures/stages/${name}.json`, import.meta.url);
  const { jobs, ...scenario } = JSON.parse(readFileSync(path, 'utf8')) as ScenarioInput;
  return {
    ...scenario,
    scheduler: {
      ...scenario.scheduler,
      tickMs: 1_000 * times,
      leaseMs: 30_000 * times,
      claimLeaseMs: 60_000 * times,
    },
    reports: { everyMs: 500 * times, tenths: false },
    jobs: jobs.map((job) => ({
      ...job,
      policy,
      stages: job.stages.map(({ attemptsMs = [], workMs, wrapUpMs, ...stage }) => ({
        ...stage,
        attemptsMs: attemptsMs.map((attempts) => attempts.map((ms) => ms * times)),
        workMs: typeof workMs === 'number' ? workMs * times : workMs,
        ...(typeof wrapUpMs === 'number' ? { wrapUpMs: wrapUpMs * times } : {}),
      })),
    })),
  };
}

const told = ({ attempts }: JobOutcome, times: number): string[] =>
  attempts.map(
    ({ attemptId, reason, ending, takenAtMs, leftAtMs }) =>
      `${attemptId} ${reason} ${ending} ${takenAtMs / times}-${leftAtMs / times}`,
  );

it.each(['straggler', 'straggler-and-empty', 'fixed-cost', 'read-at-once', 'seconds'])(
  '%s: outrider does the very same at ten times the length, since no time in it is absolute',
  async (name) => {
    const short = await runOne(scaled(name, 'outrider', 1));
    expect(short.attempts.some(({ reason }) => reason === 'backup' || reason === 'restart')).toBe(true);
    for (const times of [10, 100])
      expect(told(await runOne(scaled(name, 'outrider', times)), times)).toEqual(told(short, 1));
  },
);

it('LATE does not: its minute is a minute', async () => {
  const [short, long] = [
    await runOne(scaled('seconds', 'late', 1)),
    await runOne(scaled('seconds', 'late', 10)),
  ];
  expect([short, long].map(({ completedAtMs }) => completedAtMs)).not.toEqual([
    short.completedAtMs,
    10 * short.completedAtMs,
  ]);
});
