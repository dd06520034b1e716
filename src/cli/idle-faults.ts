import type { JobSpecInput } from '../contracts/job-spec.ts';
import type { Injection } from '../local/inject/injection.ts';
import { badInput } from './failures.ts';

type HarmedJob = Pick<JobSpecInput, 'storage' | 'stages'>;

const runsOn = ({ stages }: HarmedJob, kind: 'lambda' | 'fargate'): boolean =>
  stages.some(({ worker }) => (worker?.kind ?? 'lambda') === kind);

/** Refuses zones in which a job has nothing. Throws `InvalidInputError`, with what they harm. */
export function refuseIdleZones({ lostZone, slowZone, slowTaskZone }: Injection, job: HarmedJob): void {
  const { storage = 'standard' } = job;
  if (slowTaskZone !== undefined && !runsOn(job, 'fargate'))
    throw badInput(
      `--inject slow-zone=${slowTaskZone.zone} slows tasks on Fargate alone: this job has none (--worker fargate)`,
    );
  if ((lostZone === undefined && slowZone === undefined) || storage === 'zonal') return;
  const byName =
    slowZone === undefined ? '' : ' (tasks on Fargate are slow by the name of their zone: us-east-1a)';
  throw badInput(
    `--inject ${lostZone === undefined ? 'slow-zone' : 'lose-zone'} harms the storage of jobs with --storage zonal alone: this one has its intermediate data on "${storage}"${byName}`,
  );
}

/**
 * Of faults that can hardly befall a job, what they harm, a sentence each: who asks for them would take what comes out for
 * their effect. A job runs with them all the same, since what it is sent to may change on its way.
 */
export function idleFaults(injection: Injection, job: HarmedJob): readonly string[] {
  const { interruptions, coldStarts, lostInvocations, duplicateInvocations } = injection;
  const ofLambda = [
    ...(coldStarts === undefined ? [] : ['cold-start']),
    ...(lostInvocations === 0 ? [] : ['lose-invocation']),
    ...(duplicateInvocations === 0 ? [] : ['duplicate-invocation']),
  ];
  return [
    ...(interruptions > 0 && !runsOn(job, 'fargate')
      ? ['--inject spot harms tasks on Fargate alone, and this job has none (--worker fargate)']
      : []),
    ...(runsOn(job, 'lambda') ? [] : ofLambda).map(
      (name) => `--inject ${name} harms workers on Lambda alone, and this job has none`,
    ),
    ...idleLosses(injection, job),
  ];
}

function idleLosses(injection: Injection, { storage, stages }: HarmedJob): readonly string[] {
  const names = [
    ...(injection.lostObjects > 0 ? ['lose-object'] : []),
    ...(injection.corruptObjects > 0 ? ['corrupt-object'] : []),
  ];
  if (!stages.some(({ inputs }) => inputs.some((each) => 'stage' in each)))
    return names.map(
      (name) => `--inject ${name} harms what stages write for each other, and this job has one stage`,
    );
  // What was lost with a worker is made again on S3, and one that is told to stop puts there what it keeps.
  const losesWorkers = injection.kills + injection.memoryHogs + injection.interruptions > 0;
  if (storage !== 'worker-local' || losesWorkers) return [];
  return names.map(
    (name) =>
      `--inject ${name} harms outputs on S3 alone, and those of --storage worker-local stay with their workers, and go with them (kill=N)`,
  );
}
