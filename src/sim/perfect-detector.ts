import type { AttemptId } from '../contracts/ids.ts';
import type { Worker } from '../contracts/job-spec.ts';
import type { AttemptView } from '../core/model/job-view.ts';
import type { PolicySet, PolicyView, Proposal, RunningTask } from '../core/policy/policy-set.ts';
import { mean } from '../lib/quantiles.ts';
import { meanOf } from './distribution.ts';
import type { SimJob, SimStage } from './sim-job.ts';

/**
 * What an attempt of each task of a stage takes in the mean, from the beginning of its work to the end of its writing. Its work:
 * as the scenario says, else the mean of the later attempts that it lists, else the task's work times the mean slowdown.
 */
export function expectedMsOf(stage: SimStage): readonly number[] {
  const wrapUpMs = meanOf(stage.scenario.wrapUpMs);
  return workMsOf(stage).map((ms) => ms + wrapUpMs);
}

function workMsOf(stage: SimStage): readonly number[] {
  const { expectedMs, attemptsMs, slowdown } = stage.scenario;
  if (expectedMs !== undefined)
    return stage.tasks.map(({ index }) => expectedMs[index % expectedMs.length] ?? 0);
  if (attemptsMs !== undefined) {
    const later = attemptsMs.flatMap(([first = 0, ...others]) => (others.length === 0 ? [first] : others));
    const usual = mean(later) ?? 0;
    return stage.tasks.map(() => usual);
  }
  const usual = meanOf(slowdown);
  return stage.tasks.map(({ workMs }) => workMs * usual);
}

type LeftOf = (attemptId: AttemptId) => number | undefined;

/** What a detector knows of the machines. */
export interface KnownMachines {
  /** How long a running attempt will still take; undefined where nobody has it. */
  readonly leftMs: LeftOf;
  /** What an attempt that is launched now takes to start in the mean. */
  readonly startMs: (kind: Worker['kind']) => number;
}

/** Copies of a task that somebody has, with how long each will still take, the one that ends first in front. */
function endsOf({ copies }: RunningTask, leftMs: LeftOf): { attempt: AttemptView; ms: number }[] {
  const known = copies.flatMap((attempt) => {
    const ms = leftMs(attempt.id);
    return ms === undefined ? [] : [{ attempt, ms }];
  });
  return known.sort((a, b) => a.ms - b.ms || a.attempt.number - b.attempt.number);
}

function proposalsFor(running: RunningTask, expectedMs: number, leftMs: LeftOf): Proposal[] {
  const { task } = running;
  const [first, ...others] = endsOf(running, leftMs);
  if (first === undefined) return [];
  const facts = { remMs: Math.round(first.ms), newMs: Math.round(expectedMs) };
  if (others.length > 0) {
    return others.map(({ attempt, ms }): Proposal => {
      return { kind: 'prune', task, attempt, gainMs: ms, facts };
    });
  }
  const isAlone = running.copies.length === 1;
  if (!isAlone || first.ms <= expectedMs) return [];
  return [{ kind: 'backup', task, gainMs: first.ms - expectedMs, urgent: true, facts }];
}

/**
 * Knows when each running attempt would end, and of those to come what they take in the mean, their start and the writing of
 * their output with it: it starts a copy as soon as a new one may be expected to end sooner, knows when that will end once it runs, and stops the one that ends last. What a policy could
 * reach at the most by telling stragglers sooner and better; luck is nobody's.
 */
export function perfectDetector(job: SimJob, { leftMs, startMs }: KnownMachines): PolicySet {
  const expected = job.stages.map(expectedMsOf);
  const kinds = job.stages.map(({ scenario }) => (scenario.worker ?? job.scenario.worker).kind);
  return {
    name: 'perfect',
    launchOrder: 'largest-first',
    propose: ({ runs }: PolicyView) =>
      runs.flatMap(({ stage, tasks }) => {
        const startsInMs = startMs(kinds[stage.index] ?? job.scenario.worker.kind);
        const newMs = (task: number): number => startsInMs + (expected[stage.index]?.[task] ?? Infinity);
        return tasks.flatMap((running) => proposalsFor(running, newMs(running.task.index), leftMs));
      }),
  };
}
