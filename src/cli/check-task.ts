import { nearMiss } from '../contracts/known-fields.ts';
import type { JobRecord } from '../contracts/records.ts';
import { badInput } from './failures.ts';

/**
 * Throws where a job has no such stage or task (`stage`, `stage/index`, also with an attempt's number), which it names with
 * those that there are. One that is not planned yet has none to compare with.
 *
 * @returns whether the job has told of that stage.
 */
export function checkTask(wanted: string, { jobId, stages }: Pick<JobRecord, 'jobId' | 'stages'>): boolean {
  const [name = '', index] = wanted.split('/');
  const stage = stages.find((each) => each.name === name);
  if (stages.length > 0 && stage === undefined) {
    const names = stages.map((each) => each.name);
    const meant = nearMiss(name, names);
    const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
    throw badInput(`job ${jobId} has no stage "${name}": its stages are ${names.join(', ')}${hint}`);
  }
  if (stage !== undefined && index !== undefined && Number(index) >= stage.tasks)
    throw badInput(
      `job ${jobId} has no task "${name}/${index}": stage ${name} has tasks 0 to ${String(stage.tasks - 1)}`,
    );
  return stage !== undefined;
}
