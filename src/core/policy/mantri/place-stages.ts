import type { TaskResult } from '../../../contracts/records.ts';
import type { TaskPlacement } from '../../model/decision.ts';
import { producersOf } from '../../model/edge-manifest.ts';
import { stageAt } from '../../model/job-state.ts';
import { type AttemptView, type JobState, type StageView, unplacedSince } from '../../model/job-view.ts';
import { type Share, sharesOf } from '../../model/split-stage.ts';
import { workerOf } from '../../model/stage-worker.ts';
import type { StagePlacement, StageSplits } from '../../model/tick-config.ts';
import { stagesToBegin } from '../stages-to-open.ts';
import { placementCost, placeTasks } from './placement.ts';

/** What more tasks are placed by than so many: runs of tasks whose inputs lie alike, so that a tick is not held up. */
const mostUnits = 1_000;

/** An output that lies in a zone, and what it has left for each partition. */
interface ZonedOutput {
  /** By place among the zones; -1 where it lies in none, or in one that nothing can be launched in. */
  readonly zone: number;
  readonly lengths: ArrayLike<number>;
  readonly bytes: number;
}

/** The zone of what is read of a task: that of the worker which keeps it, or of its directory bucket. */
function zoneOf(state: JobState, { attemptId, worker, zone }: TaskResult, zones: readonly string[]): number {
  const name = worker === undefined ? zone : state.attempts.get(attemptId)?.zone;
  return name === undefined ? -1 : zones.indexOf(name);
}

function outputsOf(state: JobState, { tasks }: StageView, zones: readonly string[]): readonly ZonedOutput[] {
  return tasks.map(({ result }) => {
    const lengths = result?.partitions?.lengths ?? [];
    let bytes = 0;
    for (let at = 0; at < lengths.length; at++) bytes += lengths[at] ?? 0;
    return { zone: result === undefined ? -1 : zoneOf(state, result, zones), lengths, bytes };
  });
}

const add = (row: number[] | undefined, zone: number, bytes: number): void => {
  if (row !== undefined && zone >= 0) row[zone] = (row[zone] ?? 0) + bytes;
};

/** Adds what each task reads of its partition, or of the part of it that it reads of this input. */
function addShares(
  rows: readonly number[][],
  outputs: readonly ZonedOutput[],
  shares: readonly Share[],
  input: number,
): void {
  for (const [producer, { zone, lengths }] of outputs.entries()) {
    if (zone < 0) continue;
    for (const [task, { partition, cut }] of shares.entries()) {
      const isOthers = cut?.input === input && (producer < cut.from || producer >= cut.to);
      if (!isOthers) add(rows[task], zone, lengths[partition] ?? 0);
    }
  }
}

/** Adds what each task reads of whole outputs. */
function addWhole(
  rows: readonly number[][],
  outputs: readonly ZonedOutput[],
  pattern: 'one-to-one' | 'many-to-one' | 'broadcast',
): void {
  for (const [task, row] of rows.entries()) {
    const { from, to } = producersOf({ pattern, producerTasks: outputs.length }, task, rows.length);
    for (const { zone, bytes } of outputs.slice(from, to)) add(row, zone, bytes);
  }
}

/** I(n × r): of each task of a stage whose inputs are done, the bytes that it reads from each zone. */
export function inputsByZone(
  state: JobState,
  { shape }: StageView,
  splits: StageSplits['splits'],
  zones: readonly string[],
): readonly (readonly number[])[] {
  const shares = sharesOf(shape.tasks, splits);
  const rows = shares.map(() => zones.map(() => 0));
  for (const [input, place] of shape.upstream.entries()) {
    const outputs = outputsOf(state, stageAt(state, place), zones);
    if (outputs.every(({ zone }) => zone < 0)) continue;
    const pattern = shape.patterns?.[input] ?? 'all-to-all';
    if (pattern === 'all-to-all') addShares(rows, outputs, shares, input);
    else addWhole(rows, outputs, pattern);
  }
  return rows;
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);

/** Tasks that are placed as one: each by itself where they are few, else runs of those that read most from one zone. */
function unitsOf(inputs: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const tasks = [...inputs.keys()];
  const size = Math.ceil(inputs.length / mostUnits);
  if (size <= 1) return tasks.map((task) => [task]);
  const homes = inputs.map((row) => row.indexOf(Math.max(...row)));
  const alike = tasks.toSorted((a, b) => (homes[a] ?? 0) - (homes[b] ?? 0) || a - b);
  return Array.from({ length: Math.ceil(inputs.length / size) }, (_, unit) =>
    alike.slice(unit * size, (unit + 1) * size),
  );
}

/** The zone of each task, by place among so many. */
function zonesOfTasks(inputs: readonly (readonly number[])[], zones: number): readonly number[] {
  const units = unitsOf(inputs);
  const links = Array.from({ length: zones }, () => 1);
  const problem = {
    inputs: units.map((tasks) =>
      links.map((_, zone) => sumOf(tasks.map((task) => inputs[task]?.[zone] ?? 0))),
    ),
    up: links,
    down: links,
  };
  // How near the best it is nobody asks here.
  const { locations } = placeTasks(problem, 0);
  const placed = inputs.map(() => 0);
  for (const [unit, tasks] of units.entries()) for (const task of tasks) placed[task] = locations[unit] ?? 0;
  return placed;
}

function placementOf(
  inputs: readonly (readonly number[])[],
  zones: readonly string[],
): TaskPlacement | undefined {
  const inZones = sumOf(inputs.map(sumOf));
  if (inZones === 0) return undefined;
  const tasks = zonesOfTasks(inputs, zones.length);
  const within = sumOf(inputs.map((row, task) => row[tasks[task] ?? 0] ?? 0));
  const links = zones.map(() => 1);
  return {
    zones,
    tasks,
    facts: {
      crossingBytes: inZones - within,
      // Where a task is as likely in one zone as in another.
      spreadBytes: Math.round((inZones * (zones.length - 1)) / zones.length),
      slowestLinkBytes: placementCost({ inputs, up: links, down: links }, tasks),
    },
  };
}

/**
 * In which zone each task of the stages is to run that are about to open, whose tasks run on Fargate, where the subnet
 * decides, and of whose input some lies in single zones: where the transfers between zones are over soonest. Nothing for
 * a stage that reads from storage without zones alone.
 *
 * Source: Mantri §5.2, with the links of zones all equal (its "Equal"): what they carry nobody has measured, and AWS does
 * not say. Without limits of room: a launch for which a zone has no capacity goes to any other.
 */
export function stagePlacements(
  state: JobState,
  zones: readonly string[],
  splits: readonly StageSplits[] = [],
): readonly StagePlacement[] {
  if (zones.length < 2) return [];
  return stagesToBegin(state).flatMap((stage) => {
    if (stage.shape.upstream.length === 0 || workerOf(stage).kind !== 'fargate') return [];
    const split = splits.find((each) => each.stage === stage.index)?.splits ?? [];
    const placement = placementOf(inputsByZone(state, stage, split, zones), zones);
    return placement === undefined ? [] : [{ stage: stage.index, placement }];
  });
}

/** The zone in which a task of a stage was placed; undefined where its stage was not. */
export const placedZone = (
  { placement }: { readonly placement?: TaskPlacement | undefined },
  task: number,
): string | undefined => placement?.zones[placement.tasks[task] ?? -1];

/**
 * The zone in which an attempt had best run; undefined where its stage was not placed. A copy of one that is slow there
 * may run anywhere: what slows that may be its zone's. So may one after an attempt that found no place there, which is not
 * always told as it is launched.
 */
export function wantedZone(stage: StageView, attempt: AttemptView): string | undefined {
  const zone = placedZone(stage, attempt.task);
  if (zone === undefined) return zone;
  const before = stage.tasks[attempt.task]?.attempts.filter(({ number }) => number < attempt.number) ?? [];
  if (unplacedSince(before) > 0) return undefined;
  const isForSlow = attempt.reason === 'backup' || attempt.reason === 'restart';
  if (!isForSlow) return zone;
  return before.some((each) => each.zone === zone) ? undefined : zone;
}
