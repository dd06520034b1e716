import { NotFoundError, UnreadableRecordError } from '../contracts/errors.ts';
import { firstProblem } from '../contracts/invalid.ts';
import { planKey, uriOf } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import { type Plan, planSchema, type StagePlan } from '../contracts/plan.ts';
import type { JobRecord } from '../contracts/records.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { StageShape } from '../core/model/job-view.ts';

/**
 * The plan that a job's record names. Throws `NotFoundError` before it is planned, and where the plan is gone;
 * `UnreadableRecordError` where it is no plan.
 */
export async function loadPlan(
  objects: ObjectStore,
  dataBucket: string,
  { jobId, planNonce: nonce }: Pick<JobRecord, 'jobId' | 'planNonce'>,
): Promise<Plan> {
  if (nonce === undefined) throw new NotFoundError(`job ${jobId} has no plan yet`, { jobId });
  const bytes = await objects.readAll({ bucket: dataBucket, key: planKey({ jobId, nonce }) });
  const uri = uriOf({ bucket: dataBucket, key: planKey({ jobId, nonce }) });
  const parsed = planSchema.safeParse(jsonOf(bytes));
  if (!parsed.success) {
    const why = firstProblem(parsed.error, 'plan');
    throw new UnreadableRecordError(`the plan ${uri} cannot be read: ${why}`, { jobId, key: uri });
  }
  return parsed.data;
}

/** Undefined where it is no JSON, which is no plan either. */
function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

/**
 * How many tasks may be added to a stage as its partitions are split; undefined where they must be read whole, or where a
 * stage that reads it has a task for each of its tasks.
 */
function addableTasks({ stages }: Plan, { description }: StagePlan): number | undefined {
  const { name, operator, inputs, tasks, partitions, cutInputs } = description;
  const isJoin = (operator === 'join-reduce' && inputs.length === 2) || cutInputs !== undefined;
  if (!isJoin || !inputs.every((input) => input.kind === 'stage' && input.pattern === 'all-to-all'))
    return undefined;
  const isPaired = stages.some(({ description: { inputs: read } }) =>
    read.some((input) => input.kind === 'stage' && input.stage === name && input.pattern === 'one-to-one'),
  );
  if (isPaired) return undefined;
  const most = Math.min(limits.tasksPerStage, Math.floor(limits.shuffleSegments / Math.max(1, partitions)));
  return Math.max(0, most - tasks);
}

/** The stages of a plan as policies know them. */
export function shapesOf(plan: Plan): readonly StageShape[] {
  const places = new Map(plan.stages.map(({ description }, index) => [description.name, index]));
  return plan.stages.map((stage) => shapeOf(plan, stage, places));
}

function shapeOf(plan: Plan, stage: StagePlan, places: ReadonlyMap<string, number>): StageShape {
  const { description, sourceBytes } = stage;
  const addable = addableTasks(plan, stage);
  return {
    name: description.name,
    tasks: description.tasks,
    upstream: description.inputs.flatMap((input) =>
      input.kind === 'stage' ? [places.get(input.stage) ?? -1] : [],
    ),
    patterns: description.inputs.flatMap((input) => (input.kind === 'stage' ? [input.pattern] : [])),
    sourceBytes,
    worker: { kind: description.worker.kind, size: description.worker.size },
    mayUseFargate: description.worker.fallback !== 'none',
    ...(addable === undefined ? {} : { addableTasks: addable }),
    ...(description.cutInputs === undefined ? {} : { cutInputs: description.cutInputs }),
  };
}
