import { InvalidInputError } from '../../contracts/errors.ts';
import type { JobSpec } from '../../contracts/job-spec.ts';
import type { StagePlan } from '../../contracts/plan.ts';

/**
 * Throws `InvalidInputError` where a job asks that workers keep outputs (the tier `worker-local`) and not all of its
 * workers can reach each other: those on Lambda are outside of the network that those on Fargate are in.
 */
export function checkKeepers({ storage, stages }: JobSpec, hasFargate: boolean | undefined): void {
  if (storage !== 'worker-local') return;
  if (hasFargate === false)
    throw new InvalidInputError(
      'storage must be "standard" or "zonal": "worker-local" is for jobs on Fargate, which this deployment has not (deploy it with -c fargate=on)',
      { field: 'storage' },
    );
  const index = stages.findIndex(({ worker }) => worker.kind !== 'fargate');
  if (index < 0) return;
  const field = `stages[${index}].worker.kind`;
  throw new InvalidInputError(
    `${field} must be "fargate" where storage is "worker-local": workers on Lambda can neither keep outputs for others nor reach those that do`,
    { field },
  );
}

/**
 * The stages of a job, which say, where it asks for the tier `worker-local`, how many of their tasks leave outputs with
 * their workers: the first ones, and in all as many as there are slots, so that at most half of the workers that run at
 * once stay for others. The other tasks leave theirs in the data bucket. Throws as `checkKeepers` does.
 */
export function keepWithWorkers(
  spec: JobSpec,
  stages: readonly StagePlan[],
  totalSlots = Infinity,
): readonly StagePlan[] {
  if (spec.storage !== 'worker-local') return stages;
  checkKeepers(spec, undefined);
  let left = totalSlots;
  return stages.map((stage) => {
    const { tasks, output } = stage.description;
    const keptTasks = output === 'final' ? 0 : Math.min(tasks, left);
    left -= keptTasks;
    return keptTasks === 0 ? stage : { ...stage, description: { ...stage.description, keptTasks } };
  });
}
