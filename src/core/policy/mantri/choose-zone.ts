import { type LocationFactor, locationFactors, type ZoneSample } from '../../estimate/location-factor.ts';
import type { Facts } from '../../model/decision.ts';
import { stageAt } from '../../model/job-state.ts';
import {
  type AttemptView,
  isLive,
  type StageView,
  type TaskView,
  unplacedSince,
} from '../../model/job-view.ts';
import { workerOf } from '../../model/stage-worker.ts';
import { finiteMs } from '../merit.ts';
import type { LaunchPlace, PolicyView, Proposal, RunningTask, StageRuns } from '../policy-set.ts';
import { type KnownFactor, knownFactors } from './earlier-zones.ts';
import { placedZone } from './place-stages.ts';

/** Factors this near to the least are as good: what tasks take in two zones differs by as much for no reason. */
const alike = 1.1;

/** A zone is slower than another by so much at least: less may be rounding. */
const slower = 1.01;

/** Where a copy of a task is to run. */
export interface ChosenZone extends KnownFactor {
  readonly zone: string;
}

/** The zones where copies of a stage's tasks may run. */
export interface StageZones {
  /** Those whose factor is about the least, in the order of their names' list; one at least. */
  readonly best: readonly ChosenZone[];
  /** Those in which attempts that are owed take turns, where others are slower; absent: any zone will do. */
  readonly ofOwed?: readonly ChosenZone[];
  readonly placement: StageView['placement'];
}

/** Of a zone that nobody has tried. */
const untried: LocationFactor = { factor: 1, samples: 0 };

/**
 * The zones of a stage whose launches may choose one; undefined where they cannot. Attempts on Lambda run where it puts
 * them, about where the stage's others have: the mean over those is their t_new already.
 *
 * Where tasks were placed by what they read, a zone in which they are faster than on the mean has them, too, read less
 * over the links between zones, or over ones that are less in use, which a copy from elsewhere would not: samples do not
 * tell that from its speed. So a copy of one goes there, and is not taken to end sooner for it.
 */
export function zonesOf(
  stage: StageView,
  running: () => readonly ZoneSample[],
  view: Pick<PolicyView, 'state' | 'now' | 'zones' | 'zonesTold'>,
): StageZones | undefined {
  const { shape, placement, statistics } = stage;
  const { zones = [] } = view;
  if (zones.length < 2 || workerOf({ shape }).kind !== 'fargate') return undefined;
  const factors = knownFactors(locationFactors(statistics.zones, running()), stage, view);
  const all = zones.map((zone) => ({ zone, ...(factors.get(zone) ?? untried) }));
  const least = Math.min(...all.map(({ factor }) => factor));
  const best = all.filter(({ factor }) => factor <= alike * least);
  const leastOfCopies = placement === undefined ? 0 : 1;
  const usual = all.filter(({ factor }) => factor <= alike);
  const isSteered = placement === undefined && usual.length > 0 && usual.length < all.length;
  return {
    best: best.map((each) => ({ ...each, factor: Math.max(leastOfCopies, each.factor) })),
    ...(isSteered ? { ofOwed: usual } : {}),
    placement,
  };
}

/** Those in which none of the attempts is known to run, if there are any; else all. */
function apartFrom<T extends Pick<ChosenZone, 'zone'>>(
  zones: readonly T[],
  attempts: readonly Pick<AttemptView, 'zone'>[],
): readonly T[] {
  const apart = zones.filter(({ zone }) => attempts.every((each) => each.zone !== zone));
  return apart.length === 0 ? zones : apart;
}

/**
 * The zone where a copy of a task ends first: that with the least t_new, and so the least factor. Of those about as good
 * one where no attempt of it runs, and of those the one that it was placed in; else tasks take turns. After each attempt that
 * found no place the next zone is tried. Undefined where zones cannot be chosen.
 *
 * Source: Mantri §5.5: no copy starts at a location where it has little chance of finishing earlier. The order is ours.
 */
export function chooseZone(
  zones: StageZones | undefined,
  { task, copies }: RunningTask,
): ChosenZone | undefined {
  if (zones === undefined) return undefined;
  const left = apartFrom(zones.best, copies);
  const placed = placedZone(zones, task.index);
  const place = left.findIndex(({ zone }) => zone === placed);
  const first = place < 0 ? task.index : place;
  return left[(first + unplacedSince(task.attempts)) % left.length];
}

/** What the log is told of a zone that was chosen. */
export const zoneFacts = (chosen: ChosenZone | undefined): Facts =>
  chosen === undefined
    ? {}
    : {
        locationFactor: chosen.factor,
        [chosen.isOfOthers === true ? 'zoneSamplesOfOthers' : 'zoneSamples']: chosen.samples,
      };

/**
 * Where attempts that are owed run, by task, in stages of which one zone is found to be slower: they take turns in the
 * others, all of them and not the fastest alone, so that no zone gets whatever there is. Where a task has copies from the start
 * (`copy`, from 0), those take turns after each other, in all zones where none is slower: of two at random in three
 * zones, each third pair would be in one, and slow together where that is. A task whose attempt found no place goes on to the next. Undefined where any zone will
 * do, where zones cannot be chosen, and in a stage that was placed by what it reads. Whoever asks nothing pays nothing.
 *
 * Source: Mantri §5.5, locationFactor, which is of copies there; the rules for what waits and for clones are ours.
 */
export function zonesOfOwed(
  view: PolicyView,
  zonesIn: (runs: StageRuns) => StageZones | undefined,
): (task: TaskView, copy?: number) => LaunchPlace | undefined {
  const known = new Map<number, StageZones | undefined>();
  const zonesAt = (index: number): StageZones | undefined => {
    if (known.has(index)) return known.get(index);
    const runs = view.runs.find(({ stage }) => stage.index === index);
    const zones = zonesIn(runs ?? { stage: stageAt(view.state, index), tasks: [] });
    known.set(index, zones);
    return zones;
  };
  return (task, copy = 0) => {
    const { zones } = view;
    const stageZones = zones === undefined ? undefined : zonesAt(task.stage);
    if (zones === undefined || stageZones === undefined) return undefined;
    const { ofOwed, placement } = stageZones;
    const isSpread = placement === undefined && view.cloned?.has(task.stage) === true;
    const all: readonly (ChosenZone | Pick<ChosenZone, 'zone'>)[] =
      ofOwed ?? (isSpread ? zones.map((zone) => ({ zone })) : []);
    const left = apartFrom(all, task.attempts.filter(isLive));
    const unplaced = unplacedSince(task.attempts);
    // None of them had a place for it: then any zone will do.
    if (unplaced >= left.length) return undefined;
    const chosen = left[(task.index + copy + unplaced) % left.length];
    if (chosen === undefined) return undefined;
    return { zone: chosen.zone, ...('factor' in chosen ? { facts: zoneFacts(chosen) } : {}) };
  };
}

const isCopy = (each: Proposal): each is Extract<Proposal, { kind: 'backup' | 'restart' }> =>
  each.kind === 'backup' || each.kind === 'restart';

/** A task, the zone where a copy of it would run, and E(t_new) there. */
interface WeighedTask {
  readonly running: RunningTask;
  readonly chosen?: ChosenZone | undefined;
  readonly newMs: number | undefined;
}

/**
 * Proposals of a stage with what is not proposed since all zones where copies may run are slower than those that t_new is
 * a mean of, for the log. `ifAlike`: what would be proposed if zones were alike; most ticks never ask.
 */
export function withLostToZones(
  zones: StageZones | undefined,
  proposals: readonly Proposal[],
  ifAlike: () => readonly Proposal[],
  weighed: () => readonly WeighedTask[],
): readonly Proposal[] {
  if (zones === undefined || zones.best.some(({ factor }) => factor < slower)) return proposals;
  const copied = new Set(proposals.filter(isCopy).map(({ task }) => task));
  const lost = ifAlike().filter((each) => isCopy(each) && !copied.has(each.task));
  if (lost.length === 0) return proposals;
  const terms = new Map(weighed().map((each) => [each.running.task, each]));
  const declined = lost.map(({ task, facts }): Proposal => {
    const { chosen, newMs } = terms.get(task) ?? {};
    return {
      ...{ kind: 'decline', task, reason: 'slow-zone', zone: chosen?.zone, gainMs: 0 },
      facts: { ...facts, ...(newMs === undefined ? {} : { newMs: finiteMs(newMs) }), ...zoneFacts(chosen) },
    };
  });
  const tasks = new Set(declined.map(({ task }) => task));
  return [...proposals.filter((each) => each.kind !== 'decline' || !tasks.has(each.task)), ...declined];
}
