import { InvalidInputError } from '../../contracts/errors.ts';
import {
  isSource,
  type JobSpec,
  type StageInput,
  type StageSpec,
  type UpstreamInput,
} from '../../contracts/job-spec.ts';

/** A stage of a job whose graph is sound. */
export interface GraphStage {
  readonly spec: StageSpec;
  /** Place in the spec, for error messages. */
  readonly index: number;
  readonly upstream: readonly UpstreamInput[];
  /** Inputs of other stages that read this one. */
  readonly consumers: readonly UpstreamInput[];
}

const refuse = (field: string, message: string): never => {
  throw new InvalidInputError(`${field} ${message}`, { field });
};

function checkNames(spec: JobSpec): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [index, { name }] of spec.stages.entries()) {
    const earlier = places.get(name);
    if (earlier !== undefined)
      refuse(`stages[${index}].name`, `must differ from stages[${earlier}].name, "${name}"`);
    places.set(name, index);
  }
  return places;
}

/** What happens at a budget says nothing without one: whoever writes it has most likely forgotten the dollars. */
function checkBudget({ budget, onBudget }: JobSpec): void {
  if (onBudget !== undefined && budget === undefined)
    refuse('onBudget', 'must come with budget, the dollars at which it is to ' + onBudget);
}

function checkInputs(spec: JobSpec, places: ReadonlyMap<string, number>): void {
  for (const [index, stage] of spec.stages.entries()) {
    for (const [number, input] of stage.inputs.entries()) {
      if (isSource(input)) continue;
      const field = `stages[${index}].inputs[${number}].stage`;
      if (!places.has(input.stage)) {
        refuse(field, `must be the name of a stage (${[...places.keys()].join(', ')}), not "${input.stage}"`);
      }
      if (input.stage === stage.name) refuse(field, 'must not be the stage itself');
    }
  }
}

/** Stages so that each comes after those it reads; throws naming the stages of a cycle. */
function topologicalOrder(spec: JobSpec): number[] {
  const places = new Map(spec.stages.map(({ name }, index) => [name, index]));
  const order: number[] = [];
  const state = new Map<number, 'open' | 'closed'>();
  const visit = (index: number, trail: readonly string[]): void => {
    if (state.get(index) === 'closed') return;
    const stage = spec.stages[index];
    if (stage === undefined) return;
    if (state.get(index) === 'open') {
      const cycle = [...trail.slice(trail.indexOf(stage.name)), stage.name].join(' → ');
      refuse(`stages[${index}].inputs`, `must not form a cycle: ${cycle}`);
    }
    state.set(index, 'open');
    for (const input of stage.inputs) {
      if (!isSource(input)) visit(places.get(input.stage) ?? -1, [...trail, stage.name]);
    }
    state.set(index, 'closed');
    order.push(index);
  };
  for (const index of spec.stages.keys()) visit(index, []);
  return order;
}

/** Rules that tie a stage's own fields to who reads it and what it reads. */
function checkShape(stage: GraphStage): void {
  const field = `stages[${stage.index}]`;
  const shuffled = stage.consumers.some(({ pattern }) => pattern === 'all-to-all');
  if (stage.spec.partitions !== undefined && !shuffled) {
    refuse(`${field}.partitions`, 'must be left out: no stage reads this one with pattern "all-to-all"');
  }
  const patterns = stage.spec.inputs.map((input) => (isSource(input) ? 'source' : input.pattern));
  const deciding = patterns.filter((pattern) => pattern !== 'broadcast');
  if (deciding.length === 0)
    refuse(`${field}.inputs`, 'must hold one that is not broadcast: it decides the number of tasks');
  if (new Set(deciding).size > 1) {
    refuse(
      `${field}.inputs`,
      `must agree on the number of tasks, but they are ${[...new Set(deciding)].join(' and ')}`,
    );
  }
  if (stage.spec.tasks !== undefined && deciding[0] !== 'many-to-one') {
    refuse(`${field}.tasks`, 'must be left out unless the stage reads others with pattern "many-to-one"');
  }
}

function checkReach(stages: readonly GraphStage[]): void {
  const sinks = stages.filter(({ consumers }) => consumers.length === 0);
  const sink = sinks.at(-1);
  for (const other of sinks) {
    if (other === sink) continue;
    refuse(
      `stages[${other.index}]`,
      `is unreachable: its output is read by no stage, and the job's output is that of "${sink?.spec.name ?? ''}"`,
    );
  }
}

/**
 * The stages of a spec in topological order, the one that writes the output last. Throws `InvalidInputError`
 * with the field for: two stages of one name, unknown stages, cycles, stages that do not lead to the output,
 * inputs that disagree on the number of tasks, and partitions or tasks where they mean nothing.
 */
export function jobGraph(spec: JobSpec): readonly GraphStage[] {
  const places = checkNames(spec);
  checkBudget(spec);
  checkInputs(spec, places);
  const order = topologicalOrder(spec);
  const isUpstream = (input: StageInput): input is UpstreamInput => !isSource(input);
  const upstreamOf = (stage: StageSpec): UpstreamInput[] => stage.inputs.filter(isUpstream);
  const consumersOf = new Map<string, UpstreamInput[]>(spec.stages.map(({ name }) => [name, []]));
  for (const stage of spec.stages) {
    for (const input of upstreamOf(stage)) consumersOf.get(input.stage)?.push(input);
  }
  const stages = order.flatMap((index) => {
    const stage = spec.stages[index];
    if (stage === undefined) return [];
    return [
      { spec: stage, index, upstream: upstreamOf(stage), consumers: consumersOf.get(stage.name) ?? [] },
    ];
  });
  checkReach(stages);
  for (const stage of stages) checkShape(stage);
  return [
    ...stages.filter(({ consumers }) => consumers.length > 0),
    ...stages.filter(({ consumers }) => consumers.length === 0),
  ];
}

/** Path of an input in the spec: by it its objects are kept, and errors name it. */
export const inputField = (stageIndex: number, input: number): string =>
  `stages[${stageIndex}].inputs[${input}]`;
