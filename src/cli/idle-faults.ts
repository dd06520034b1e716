import type { JobSpecInput } from '../contracts/job-spec.ts';
import type { Injection } from '../local/inject/injection.ts';
import { badInput } from './failures.ts';

/**
 * Refuses faults that cannot befall a job: who asks for them would take what comes out for their effect. Throws
 * `InvalidInputError`, with what they harm, of the first that has nothing to harm.
 */
export function refuseIdleFaults(
  injection: Injection,
  { storage = 'standard', stages }: Pick<JobSpecInput, 'storage' | 'stages'>,
): void {
  const runsOn = (kind: 'lambda' | 'fargate'): boolean =>
    stages.some(({ worker }) => (worker?.kind ?? 'lambda') === kind);
  const { lostZone, slowZone, slowTaskZone, interruptions, lostObjects, corruptObjects } = injection;
  if (slowTaskZone !== undefined && !runsOn('fargate'))
    throw badInput(
      `--inject slow-zone=${slowTaskZone.zone} slows tasks on Fargate alone: this job has none (--worker fargate)`,
    );
  if (interruptions > 0 && !runsOn('fargate'))
    throw badInput('--inject spot harms tasks on Fargate alone: this job has none (--worker fargate)');
  const ofLambda = [
    ...(injection.coldStarts === undefined ? [] : ['cold-start']),
    ...(injection.lostInvocations === 0 ? [] : ['lose-invocation']),
    ...(injection.duplicateInvocations === 0 ? [] : ['duplicate-invocation']),
  ];
  if (ofLambda[0] !== undefined && !runsOn('lambda'))
    throw badInput(`--inject ${ofLambda[0]} harms workers on Lambda alone: this job has none`);
  if (
    lostObjects + corruptObjects > 0 &&
    !stages.some(({ inputs }) => inputs.some((each) => 'stage' in each))
  )
    throw badInput(
      `--inject ${lostObjects > 0 ? 'lose-object' : 'corrupt-object'} harms what stages write for each other: this job has one stage`,
    );
  if ((lostZone === undefined && slowZone === undefined) || storage === 'zonal') return;
  const byName =
    slowZone === undefined ? '' : ' (tasks on Fargate are slow by the name of their zone: us-east-1a)';
  throw badInput(
    `--inject ${lostZone === undefined ? 'slow-zone' : 'lose-zone'} harms the storage of jobs with --storage zonal alone: this one has its intermediate data on "${storage}"${byName}`,
  );
}
