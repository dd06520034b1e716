import { elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import { type AttemptView, isRiding, type JobState, type Pack, type StageView } from '../model/job-view.ts';
import { meanMs } from '../model/stage-statistics.ts';
import { foretoldMs, nearlyAllEndMs } from './expected-run.ts';

/** What a worker may take to go on with the next attempt, or an attempt beyond what nearly all take. */
const graceMs = 3_000;
/** A launch that has taken so many times the mean is late. */
const lateFactor = 2;
/** A rider gets a place of its own once it waits for so many times what a launch takes, and so much longer. */
const worthLags = 2;
const worthMs = 200;

/** Riders that are to get places of their own. */
export interface OwnPlaces {
  /** Their worker is gone, or held up: they are as urgent as a retry. */
  readonly urgent: readonly AttemptView[];
  /** They would begin sooner by themselves, where a slot is to spare; who waits longest comes first. */
  readonly spare: readonly AttemptView[];
  /** Of both, those that hold no slot yet. */
  readonly leaving: readonly AttemptView[];
}

const noOwnPlaces: OwnPlaces = { urgent: [], spare: [], leaving: [] };

/** How long those behind the attempt whose turn it is wait for it; undefined where it is held up. */
function turnMs(
  stage: StageView,
  pack: Pack,
  medianMs: number,
  turn: AttemptView | undefined,
  now: EpochMs,
): number | undefined {
  if (pack.isOver || turn === undefined || turn.cancelOrdered) return undefined;
  const ageMs = elapsedMs(pack.since, now);
  const lagMs = meanMs(stage.statistics.lag);
  if (turn.state === 'launched') {
    if (turn.isHeldBack === true) return medianMs + lagMs;
    const patienceMs = turn.place === 'carrier' ? graceMs : graceMs + lateFactor * lagMs;
    // What was not read since may have begun.
    if (elapsedMs(pack.since, turn.readAt ?? pack.since) > patienceMs) return undefined;
    return medianMs + Math.max(0, (turn.place === 'carrier' ? 0 : lagMs) - ageMs);
  }
  if (ageMs > nearlyAllEndMs(stage) + graceMs) return undefined;
  // One that takes longer than usual is taken to last as long again as it has.
  return ageMs < medianMs ? medianMs - ageMs : ageMs;
}

/**
 * Riders that are to be launched by themselves after all. The same attempt is launched, and whoever claims it first
 * runs it, so that a worker that only seemed gone finds it taken. Costs a pass over what rides: a tick asks once.
 */
export function ownPlaces(state: JobState, now: EpochMs): OwnPlaces {
  if (state.packs.size === 0) return noOwnPlaces;
  const urgent: AttemptView[] = [];
  const spare: { readonly attempt: AttemptView; readonly waitMs: number }[] = [];
  for (const pack of state.packs.values()) {
    const head = state.attempts.get(pack.head);
    const turn = [...(head === undefined ? [] : [head]), ...pack.riders].find((each) => state.live.has(each));
    const stage = state.stages[head?.stage ?? -1];
    if (stage === undefined) continue;
    const medianMs = quantileOf(stage.statistics.runMs, 0.5) ?? 0;
    const leastMs = worthLags * meanMs(stage.statistics.lag) + worthMs;
    let waitMs = turnMs(stage, pack, medianMs, turn, now);
    const isAwaited = turn?.place === 'carrier' && turn.state === 'launched';
    for (const attempt of pack.riders) {
      const task = stage.tasks[attempt.task];
      const mayGo = task !== undefined && task.result === undefined && task.notBefore <= now;
      if (waitMs === undefined) {
        if (mayGo && (isRiding(attempt) || (isAwaited && attempt === turn))) urgent.push(attempt);
      } else if (isRiding(attempt)) {
        if (mayGo && waitMs > leastMs && attempt.isHeldBack !== true) spare.push({ attempt, waitMs });
        waitMs += task === undefined ? 0 : foretoldMs(stage, medianMs, task);
      }
    }
  }
  spare.sort((a, b) => b.waitMs - a.waitMs || (a.attempt.id < b.attempt.id ? -1 : 1));
  const all = [...urgent, ...spare.map(({ attempt }) => attempt)];
  return {
    urgent,
    spare: all.slice(urgent.length),
    leaving: all.filter((attempt) => !state.live.has(attempt)),
  };
}
