import { invariant } from '../contracts/errors.ts';
import { type AttemptId, attemptParts, type JobId, taskIdOf } from '../contracts/ids.ts';
import type { Plan, StagePlan } from '../contracts/plan.ts';
import { type EpochMs, epochMs } from '../contracts/units.ts';
import { fnv1a } from '../contracts/fnv1a.ts';
import type { Rng } from '../lib/rng.ts';
import type { LaunchOrder } from '../core/model/job-view.ts';
import { type Distribution, sample, sampleMs } from './distribution.ts';
import { type NodeLuck, sampleOn } from './node-luck.ts';
import type { ClusterScenario } from './cluster-scenario.ts';
import type { JobScenario, StageScenario } from './job-scenario.ts';
import type { Scenario } from './scenario.ts';

/** A task as the world knows it: what it will really take. */
export interface SimTask {
  readonly index: number;
  /** Work at speed 1, before an attempt's own bad luck. */
  readonly workMs: number;
  readonly inputBytes: number;
  readonly outputBytes: number;
  /** The endpoints where its source lies: none until its first reader is there, where that decides. */
  readonly homes: number[];
  /** Its first output is gone when it is first read. */
  readonly outputIsLost: boolean;
}

/** A committed output or a replica of it: which attempt wrote it, and on which endpoint of the network it lies. */
export interface OutputCopy {
  readonly attempt: number;
  readonly endpoint: number;
  /** The machine that it lies on. */
  readonly host: number;
  isGone: boolean;
}

export interface SimStage {
  readonly index: number;
  readonly scenario: StageScenario;
  readonly upstream: readonly number[];
  readonly tasks: readonly SimTask[];
  /** Of each task, the copies of its output by arrival, also those that are gone. None before it is done. */
  readonly outputs: readonly OutputCopy[][];
  /** Of each task, the attempt whose output lists of inputs name. */
  readonly winners: (number | undefined)[];
  /** Copies that are gone. */
  copiesGone: number;
  /** What each list of inputs that was written for its readers names: the winners of that time, by the list's key. */
  readonly lists: Map<string, readonly (number | undefined)[]>;
  readonly attemptRng: Rng;
  /** Endpoints where outputs' second copies are written. */
  readonly homes: readonly number[];
  /** Whether outputs stay with their workers, so that the scheduler knows their zones and partitions. */
  readonly keepsOutputs: boolean;
}

/** A job of the scenario with everything drawn that does not hang on the schedule. */
export interface SimJob {
  readonly id: JobId;
  readonly index: number;
  readonly scenario: JobScenario;
  readonly arrivesAt: EpochMs;
  readonly stages: readonly SimStage[];
}

/** What an attempt will meet, drawn from its id: the same whenever and wherever it runs, but for its node's part in it. */
export interface AttemptDraw {
  /** Work at speed 1. */
  readonly workMs: number;
  readonly wrapUpMs: number;
  /** Shares of the work at which it fails or dies silently; undefined where it does not. */
  readonly failsAt: number | undefined;
  readonly diesAt: number | undefined;
}

const bucket = 'simulated';

/** How many places of a cluster bytes flow between: hosts or nodes where they have links of their own, else zones. */
export function endpointCount({ hosts, nodeLinks, nodes, zones }: ClusterScenario): number {
  if (hosts !== undefined)
    return nodes.reduce((sum, { count, perHost }) => sum + Math.ceil(count / perHost), 0);
  return nodeLinks === undefined ? zones.length : nodes.reduce((sum, { count }) => sum + count, 0);
}

/** Endpoints where data may lie, each as likely as the next: of hosts, one for each of their nodes. */
function homesOf(cluster: ClusterScenario): readonly number[] {
  if (cluster.hosts === undefined) return Array.from({ length: endpointCount(cluster) }, (_, place) => place);
  let first = 0;
  return cluster.nodes.flatMap(({ count, perHost }) => {
    const from = first;
    first += Math.ceil(count / perHost);
    return Array.from({ length: count }, (_, place) => from + Math.floor(place / perHost));
  });
}

function perTask(values: Distribution | readonly number[], index: number, rng: Rng): number {
  if (typeof values === 'object' && 'length' in values) return Math.round(values[index % values.length] ?? 0);
  return sampleMs(values, rng);
}

function drawnHomes({ source }: StageScenario, homes: readonly number[], rng: Rng): number[] {
  const drawn = homes[Math.floor(rng.next() * homes.length)] ?? 0;
  return source === 'anywhere' ? [drawn] : [];
}

/** An endpoint other than `here` where the second copy of what lies there may be; `here` if there is no other. */
export function otherHome({ homes }: SimStage, here: number, rng: Rng): number {
  const others = homes.filter((endpoint) => endpoint !== here);
  return others[Math.floor(rng.next() * others.length)] ?? here;
}

function buildStage(
  scenario: StageScenario,
  index: number,
  job: JobScenario,
  world: Scenario,
  rng: Rng,
): SimStage {
  const homes = homesOf(world.cluster);
  const tasks = Array.from({ length: scenario.tasks }, (_, task): SimTask => ({
    index: task,
    workMs: perTask(scenario.workMs, task, rng),
    inputBytes: perTask(scenario.inputBytes, task, rng),
    outputBytes: perTask(scenario.outputBytes, task, rng),
    homes: drawnHomes(scenario, homes, rng),
    outputIsLost: rng.next() < world.faults.lostOutput,
  }));
  const places = new Map(job.stages.map(({ name }, place) => [name, place]));
  return {
    index,
    scenario,
    tasks,
    upstream: scenario.upstream.map((name) => places.get(name) ?? -1),
    outputs: tasks.map(() => []),
    winners: tasks.map(() => undefined),
    copiesGone: 0,
    lists: new Map(),
    attemptRng: rng.fork('attempts'),
    homes,
    keepsOutputs: world.cluster.keepsOutputs === true,
  };
}

/** Six hex digits of seed and name, six of the job's place: ids of one run differ, and runs of other seeds too. */
function jobIdOf(name: string, index: number, seed: string): JobId {
  const hash = fnv1a(`${seed}/${name}`).toString(16).padStart(8, '0').slice(0, 6);
  return `${name}-${hash}${index.toString(16).padStart(6, '0')}` as JobId;
}

function arrivalsOf({ arrivals }: JobScenario, rng: Rng): readonly number[] {
  if (arrivals.kind === 'list') return arrivals.atMs;
  let at: number = arrivals.fromMs;
  return Array.from({ length: arrivals.jobs }, () => {
    at += sample({ kind: 'exponential', mean: arrivals.meanMs }, rng);
    return Math.round(at);
  });
}

/** Every job of the scenario, by time of arrival and then as listed. */
export function buildJobs(world: Scenario, seed: string, rng: Rng): SimJob[] {
  const arrivals = world.jobs.flatMap((scenario, group) =>
    arrivalsOf(scenario, rng.fork(`arrivals-${group}`)).map((at, number) => ({
      scenario,
      at,
      group,
      number,
    })),
  );
  arrivals.sort((a, b) => a.at - b.at || a.group - b.group || a.number - b.number);
  return arrivals.map(({ scenario, at, group, number }, index): SimJob => {
    const jobRng = rng.fork(`job-${group}-${number}`);
    const stages = scenario.stages.map((stage, place) =>
      buildStage(stage, place, scenario, world, jobRng.fork(stage.name)),
    );
    return { id: jobIdOf(scenario.name, index, seed), index, scenario, arrivesAt: epochMs(at), stages };
  });
}

/** What an attempt meets where it starts. */
export interface Meeting {
  /** The node's part in its slowdown; undefined where it has none. */
  readonly luck: NodeLuck | undefined;
  /** No attempt of its stage has started there before. */
  readonly isFirst: boolean;
}

/** What attempt `number` of a task will meet, on a node, or on any. */
export function drawAttempt(
  stage: SimStage,
  task: SimTask,
  number: number,
  faults: Scenario['faults'],
  { luck, isFirst }: Meeting = { luck: undefined, isFirst: false },
): AttemptDraw {
  const rng = stage.attemptRng.fork(`${task.index}/${number}`);
  const listed = stage.scenario.attemptsMs?.[task.index % stage.scenario.attemptsMs.length];
  const slowdown = sampleOn(stage.scenario.slowdown, luck, rng);
  const workMs =
    listed === undefined ? task.workMs * slowdown : (listed[Math.min(number, listed.length - 1)] ?? 0);
  const fails = rng.next() < faults.attemptFailure;
  const failsAt = rng.next();
  const dies = rng.next() < faults.lostAttempt;
  const diesAt = rng.next();
  return {
    workMs: Math.round(workMs + (isFirst ? stage.scenario.firstWorkMs : 0)),
    wrapUpMs: sampleMs(stage.scenario.wrapUpMs, rng),
    failsAt: fails ? failsAt : undefined,
    diesAt: dies ? diesAt : undefined,
  };
}

function stagePlan(job: SimJob, stage: SimStage): StagePlan {
  const { scenario } = stage;
  const isRead = job.stages.some(({ upstream }) => upstream.includes(stage.index));
  return {
    description: {
      jobId: job.id,
      name: scenario.name,
      options: {},
      worker: scenario.worker ?? job.scenario.worker,
      tasks: scenario.tasks,
      partitions: 1,
      output: isRead ? 'unsorted' : 'final',
      dataBucket: bucket,
      outputPrefix: { bucket, key: `output/${job.id}/` },
      inputs: stage.upstream.map((place) => {
        const producer = job.stages[place];
        invariant(producer !== undefined, 'a stage reads one that is not there', { place });
        return {
          kind: 'stage',
          stage: producer.scenario.name,
          pattern: scenario.pattern,
          producerTasks: producer.tasks.length,
          producerPartitions: 1,
        };
      }),
    },
    // All of a task's input, wherever it comes from: nothing is added when the stage opens, but where outputs are kept.
    sourceBytes: stage.tasks.map(({ inputBytes }) =>
      stage.keepsOutputs && stage.upstream.length > 0 ? 0 : inputBytes,
    ),
    manifestOffsets: stage.upstream.map(() => []),
  };
}

/** Parameters of the job's policy; its order of launches is one of them. */
const policyConfigOf = (
  { scenario: { policyConfig, launchOrder: ownOrder } }: SimJob,
  launchOrder: LaunchOrder | undefined = ownOrder,
): Plan['policyConfig'] => (launchOrder === undefined ? policyConfig : { ...policyConfig, launchOrder });

/** The plan by which production schedules the job; with another order of launches than its own, if told. */
export const planOf = (job: SimJob, launchOrder?: LaunchOrder): Plan => ({
  version: 1,
  jobId: job.id,
  nonce: 'simulated',
  name: job.scenario.name,
  policy: job.scenario.policy,
  policyConfig: policyConfigOf(job, launchOrder),
  shards: 1,
  stages: job.stages.map((stage) => stagePlan(job, stage)),
});

/** The copy of a task's output that an attempt has written, also if it is gone; undefined where it has written none. */
export const outputCopy = (
  stage: SimStage,
  task: number,
  number: number | undefined,
): OutputCopy | undefined => stage.outputs[task]?.find(({ attempt }) => attempt === number);

/** Lists of inputs that are written from now on name another copy of an output, since the first is gone. */
export function readInPlace(job: SimJob, lost: AttemptId, use: number): void {
  const { stage: name, task: index } = attemptParts(lost);
  const { stage, task } = taskOfJob(job, name, index);
  stage.winners[task.index] = use;
}

/** What the lists of inputs name that a launch comes with; each is of the time when it was first used. */
export function listsRead(
  job: SimJob,
  stage: SimStage,
  inputs: readonly { readonly key: string }[],
): readonly (readonly (number | undefined)[])[] {
  return stage.upstream.map((place, input) => {
    const producer = job.stages[place];
    const key = inputs[input]?.key;
    invariant(producer !== undefined && key !== undefined, 'a launch without a list of inputs', { place });
    const known = producer.lists.get(key);
    if (known !== undefined) return known;
    const list = [...producer.winners];
    producer.lists.set(key, list);
    return list;
  });
}

/** The stage of a job by name, and the task by place; wrong ones are our bug. */
export function taskOfJob(job: SimJob, stageName: string, index: number): { stage: SimStage; task: SimTask } {
  const stage = job.stages.find(({ scenario }) => scenario.name === stageName);
  const task = stage?.tasks[index];
  invariant(stage !== undefined && task !== undefined, 'no such task', {
    taskId: taskIdOf(stageName, index),
  });
  return { stage, task };
}
