import { ascending, mean } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import { NodePool } from './node-pool.ts';
import type { JobOutcome } from './outcome.ts';
import type { Scenario } from './scenario.ts';
import { buildJobs, drawAttempt, type SimJob, type SimStage } from './sim-job.ts';

/** Ends of a job that no real scheduler reaches, in milliseconds from its start. */
export interface IdealTimes {
  /** Every task takes the mean of its stage. */
  readonly noSkewMs: number;
  /** The worst quarter of the tasks is dropped, and all take the mean of the rest. */
  readonly noSkewChopTailMs: number;
}

/** What one would reach who knew how long every attempt will take. */
export interface ClairvoyantTimes {
  /** No schedule is shorter. */
  readonly boundMs: number;
  /** What longest-first makes of the best attempt of each task: a schedule that can be had. */
  readonly scheduleMs: number;
}

/** Share of the tasks that ChopTail drops. Source: Mantri §6.1. */
const choppedShare = 0.25;
/** Attempts of a task among which a clairvoyant picks the best; policies make no more. */
const knownAttempts = 8;

/** ⌈n / slots⌉ waves of equal tasks. No tasks take no time. */
export const wavesMs = (tasks: number, slots: number, eachMs: number): number =>
  Math.ceil(tasks / slots) * eachMs;

/** A stage of which all tasks take the mean time, with the slowest `choppedShare` left out of the mean or not. */
function noSkewMs(taskMs: readonly number[], slots: number, chop: boolean): number {
  const times = ascending(taskMs);
  const kept = chop ? times.slice(0, Math.max(1, Math.ceil(times.length * (1 - choppedShare)))) : times;
  return wavesMs(times.length, slots, mean(kept) ?? 0);
}

/** The end of a job whose stages take the given times, each after the last of those it reads. */
function criticalPathMs(
  stages: readonly { readonly upstream: readonly number[]; readonly lengthMs: number }[],
): number {
  const ends: number[] = [];
  for (const { upstream, lengthMs } of stages) {
    ends.push(upstream.reduce((latest, place) => Math.max(latest, ends[place] ?? 0), 0) + lengthMs);
  }
  return ends.reduce((latest, end) => Math.max(latest, end), 0);
}

/**
 * NoSkew and NoSkew + ChopTail of a job, from the task times of a run of it without copies. `slots`: what the
 * job has to itself; every stage is given all of them.
 *
 * Source: Mantri §6.1 (ground truth §3.7).
 */
export function idealTimes({ stages }: Pick<JobOutcome, 'stages'>, slots: number): IdealTimes {
  const path = (chop: boolean): number =>
    criticalPathMs(
      stages.map(({ taskMs, upstream }) => ({ upstream, lengthMs: noSkewMs(taskMs, slots, chop) })),
    );
  return { noSkewMs: path(false), noSkewChopTailMs: path(true) };
}

/**
 * When the last of `worksMs` ends if each, in order, goes to the slot where it ends first. `speeds` holds one
 * speed per slot, at least one.
 */
export function listScheduleMs(worksMs: readonly number[], speeds: readonly number[]): number {
  const freeAt = speeds.map(() => 0);
  let endMs = 0;
  for (const workMs of worksMs) {
    let best = 0;
    let bestEnd = Infinity;
    for (const [slot, speed] of speeds.entries()) {
      const end = (freeAt[slot] ?? 0) + workMs / speed;
      if (end < bestEnd) [best, bestEnd] = [slot, end];
    }
    freeAt[best] = bestEnd;
    endMs = Math.max(endMs, bestEnd);
  }
  return endMs;
}

function bestWorksMs(stage: SimStage, faults: Scenario['faults']): number[] {
  return stage.tasks.map((task) => {
    let best = Infinity;
    for (let number = 0; number < knownAttempts; number++) {
      const draw = drawAttempt(stage, task, number, { ...faults, attemptFailure: 0, lostAttempt: 0 });
      best = Math.min(best, draw.workMs + draw.wrapUpMs);
    }
    return best;
  });
}

function clairvoyantTimes(job: SimJob, scenario: Scenario, speeds: readonly number[]): ClairvoyantTimes {
  const capacity = speeds.reduce((total, speed) => total + speed, 0);
  const fastest = speeds.reduce((most, speed) => Math.max(most, speed), 0);
  const stages = job.stages.map((stage) => {
    const works = ascending(bestWorksMs(stage, scenario.faults)).toReversed();
    const total = works.reduce((sum, work) => sum + work, 0);
    return {
      upstream: stage.upstream,
      boundMs: Math.max(total / capacity, (works[0] ?? 0) / fastest),
      scheduleMs: listScheduleMs(works, speeds),
    };
  });
  return {
    boundMs: criticalPathMs(stages.map(({ upstream, boundMs }) => ({ upstream, lengthMs: boundMs }))),
    scheduleMs: criticalPathMs(
      stages.map(({ upstream, scheduleMs }) => ({ upstream, lengthMs: scheduleMs })),
    ),
  };
}

/**
 * For each job of a run of `scenario` with `seed`, in the order of the run: what it would take alone on the whole
 * cluster for one who knows the true length of every attempt and picks the best of each task. Start-up, network,
 * faults, spells and Lambda's limit of time (it knows what goes to Fargate) cost nothing here, so the bound holds with them too; it
 * needs nodes that keep their speed
 * (elastic ones draw a new one with each environment).
 */
export function clairvoyantTimesOf(scenario: Scenario, seed: string): ClairvoyantTimes[] {
  const rng = createRng(`${scenario.name}/${seed}`);
  const pool = new NodePool(scenario.cluster, rng.fork('cluster'));
  const speeds = pool.nodes.flatMap(({ baseSpeed, group }) =>
    Array.from({ length: group.slots }, () => baseSpeed),
  );
  speeds.sort((a, b) => b - a);
  return buildJobs(scenario, seed, rng.fork('jobs')).map((job) => clairvoyantTimes(job, scenario, speeds));
}
