import { NotFoundError, UnreadableRecordError } from '../contracts/errors.ts';
import { firstProblem } from '../contracts/invalid.ts';
import { planKey, uriOf } from '../contracts/keys.ts';
import { type Plan, planSchema } from '../contracts/plan.ts';
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

/** The stages of a plan as policies know them. */
export function shapesOf(plan: Plan): readonly StageShape[] {
  const places = new Map(plan.stages.map(({ description }, index) => [description.name, index]));
  return plan.stages.map(({ description, sourceBytes }) => ({
    name: description.name,
    tasks: description.tasks,
    upstream: description.inputs.flatMap((input) =>
      input.kind === 'stage' ? [places.get(input.stage) ?? -1] : [],
    ),
    patterns: description.inputs.flatMap((input) => (input.kind === 'stage' ? [input.pattern] : [])),
    sourceBytes,
    worker: { kind: description.worker.kind, size: description.worker.size },
    mayUseFargate: description.worker.fallback !== 'none',
  }));
}
