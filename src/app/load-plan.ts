import { BrokenInvariantError, NotFoundError } from '../contracts/errors.ts';
import { planKey } from '../contracts/keys.ts';
import { type Plan, planSchema } from '../contracts/plan.ts';
import type { JobRecord } from '../contracts/records.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { StageShape } from '../core/model/job-view.ts';

/** The plan that a job's record names. Throws `NotFoundError` before it is planned, and where the plan is gone. */
export async function loadPlan(
  objects: ObjectStore,
  dataBucket: string,
  { jobId, planNonce: nonce }: Pick<JobRecord, 'jobId' | 'planNonce'>,
): Promise<Plan> {
  if (nonce === undefined) throw new NotFoundError(`job ${jobId} has no plan yet`, { jobId });
  const bytes = await objects.readAll({ bucket: dataBucket, key: planKey({ jobId, nonce }) });
  const parsed = planSchema.safeParse(JSON.parse(new TextDecoder().decode(bytes)));
  if (!parsed.success)
    throw new BrokenInvariantError('plan does not match its schema', { jobId, cause: parsed.error.message });
  return parsed.data;
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
  }));
}
