import type { AttemptId } from '../contracts/ids.ts';
import type { Worker } from '../contracts/job-spec.ts';
import type { AttemptView, StageView, TaskView } from '../core/model/job-view.ts';
import type { TickConfig } from '../core/model/tick-config.ts';
import { fitWorker } from '../core/policy/fit-workers.ts';
import { mayUseFargate } from '../core/policy/next-worker.ts';
import type { PolicySet, PolicyView, Proposal, RunningTask } from '../core/policy/policy-set.ts';
import { mean } from '../lib/quantiles.ts';
import { meanOf } from './distribution.ts';
import type { SimJob, SimStage } from './sim-job.ts';
import type { LeftOfAttempt } from './sim-worker.ts';

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

/** What a detector knows of the machines. */
export interface KnownMachines {
  /** How long a running attempt will still run; undefined where nobody has it. */
  readonly left: (attemptId: AttemptId) => LeftOfAttempt | undefined;
  /** What an attempt that is launched now takes to start in the mean. */
  readonly startMs: (kind: Worker['kind']) => number;
  /** By what the scheduler chooses workers: so it does for this one's attempts. */
  readonly terms: Pick<TickConfig, 'hasFargate' | 'lambdaMs'>;
}

/** When tasks of one job would be done by this attempt of theirs or that, in the mean. */
class DoneTimes {
  readonly #machines: KnownMachines;
  readonly #lambdaMs: number;

  constructor(machines: KnownMachines) {
    this.#machines = machines;
    this.#lambdaMs = machines.terms.lambdaMs ?? Infinity;
  }

  /** By one that is launched now, where its work takes `workMs`: on the worker that the scheduler gives it. */
  byNew(stage: StageView, task: TaskView, workMs: number): number {
    const { startMs, terms } = this.#machines;
    const { kind } = fitWorker(stage, task, terms, undefined).worker;
    const runsOut = kind === 'lambda' && workMs > this.#lambdaMs;
    return startMs(kind) + (runsOut ? this.#lambdaMs + this.#anew(workMs) : workMs);
  }

  /** By one that runs; one that will run out of Lambda's time leaves its task to another on Fargate. */
  byRunning({ id }: AttemptView, workMs: number): number | undefined {
    const left = this.#machines.left(id);
    return left === undefined || !left.runsOut ? left?.ms : left.ms + this.#anew(workMs);
  }

  /** Whether one that runs will run out of Lambda's time, and so would another, where its task may go on on Fargate. */
  isDoomed(stage: StageView, { id }: AttemptView, workMs: number): boolean {
    if (workMs <= this.#lambdaMs || !mayUseFargate(stage, this.#machines.terms.hasFargate === true))
      return false;
    return this.#machines.left(id)?.runsOut === true;
  }

  #anew(workMs: number): number {
    return this.#machines.startMs('fargate') + workMs;
  }
}

/** Copies of a task that somebody has, with when it would be done by each, the first in front. */
function endsOf(
  { copies }: RunningTask,
  workMs: number,
  done: DoneTimes,
): { attempt: AttemptView; ms: number }[] {
  const known = copies.flatMap((attempt) => {
    const ms = done.byRunning(attempt, workMs);
    return ms === undefined ? [] : [{ attempt, ms }];
  });
  return known.sort((a, b) => a.ms - b.ms || a.attempt.number - b.attempt.number);
}

function proposalsFor(stage: StageView, running: RunningTask, workMs: number, done: DoneTimes): Proposal[] {
  const { task } = running;
  const doomed = running.copies.filter((attempt) => done.isDoomed(stage, attempt, workMs));
  if (doomed.length > 0)
    return doomed.map((attempt): Proposal => ({ kind: 'leave', task, attempt, gainMs: workMs, facts: {} }));
  const [first, ...others] = endsOf(running, workMs, done);
  if (first === undefined) return [];
  const expectedMs = done.byNew(stage, task, workMs);
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
 * reach at the most by telling stragglers sooner and better; luck is nobody's, and what will outlast Lambda is begun anew on Fargate
 * at once.
 */
export function perfectDetector(job: SimJob, machines: KnownMachines): PolicySet {
  const expected = job.stages.map(expectedMsOf);
  const done = new DoneTimes(machines);
  return {
    name: 'perfect',
    launchOrder: 'largest-first',
    propose: ({ runs }: PolicyView) =>
      runs.flatMap(({ stage, tasks }) =>
        tasks.flatMap((running) => {
          const workMs = expected[stage.index]?.[running.task.index] ?? Infinity;
          return proposalsFor(stage, running, workMs, done);
        }),
      ),
  };
}
