import { CfnParameter, Duration, Size, Stack, type StackProps } from 'aws-cdk-lib';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import type { IGrantable } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { workerSizes } from '../../src/contracts/job-spec.ts';
import { ParameterName, Setting } from '../../src/contracts/settings.ts';
import type { OutriderConfig } from '../config.ts';
import { handlerCode } from '../constructs/bundle.ts';
import { type FargateWorkers, fargateWorkers } from '../constructs/fargate-workers.ts';
import { itemsOf } from '../constructs/grants.ts';
import { functionRole, jobFunction } from '../constructs/job-function.ts';
import { failuresTo, tellOfStoppedTasks, workerEnded } from '../constructs/worker-ends.ts';
import type { StorageStack } from './storage.ts';

export interface ComputeStackProps extends StackProps {
  readonly config: OutriderConfig;
  readonly storage: StorageStack;
}

type WorkerSize = keyof typeof workerSizes;

/** Scratch space grows with memory: a sort spills what memory does not hold. */
const scratchMb: Readonly<Record<WorkerSize, number>> = {
  small: 2_048,
  medium: 4_096,
  large: 8_192,
  xlarge: 10_240,
};

/**
 * What runs attempts: a Lambda function for each size of worker and, where the deployment has it, a Fargate task for what
 * outlasts Lambda.
 */
export class ComputeStack extends Stack {
  /** Whether stages may ask for credentials: `true` or `false`. */
  readonly userCredentials: CfnParameter;
  readonly workers: Readonly<Record<WorkerSize, LambdaFunction>>;
  /** Records why workers are gone. */
  readonly workerEnded: LambdaFunction;
  /** Absent where the deployment has no Fargate. */
  readonly fargate?: FargateWorkers;

  constructor(scope: Construct, id: string, props: ComputeStackProps) {
    super(scope, id, { description: 'Outrider: workers on Lambda and Fargate', ...props });
    this.userCredentials = new CfnParameter(this, ParameterName.userCredentials, {
      allowedValues: ['true', 'false'],
      default: 'false',
      description: 'Whether stages may ask for the credentials of workers for their user code and programs',
    });
    const { storage, config } = props;
    this.workerEnded = workerEnded(this, {
      table: storage.table,
      logs: storage.jobLogs,
      concurrency: props.config.coordinatorConcurrency,
    });
    this.workers = this.addWorkerFunctions(props);
    if (config.fargate !== 'off') this.fargate = this.addFargate(props);
  }

  private addFargate({ storage, config }: ComputeStackProps): FargateWorkers {
    const fargate = fargateWorkers(this, {
      config,
      environment: workerEnvironment(storage, this.userCredentials),
      logs: storage.jobLogs,
    });
    grantSessions(fargate.taskDefinition.taskRole, storage.table);
    tellOfStoppedTasks(this, fargate.cluster, this.workerEnded);
    return fargate;
  }

  private addWorkerFunctions(props: ComputeStackProps): Record<WorkerSize, LambdaFunction> {
    const { storage } = props;
    const role = functionRole(this, 'WorkerRole', storage.jobLogs);
    grantSessions(role, storage.table);
    const code = handlerCode('worker', ['worker/user-code-host']);
    const onFailure = failuresTo(this.workerEnded, role);
    const worker = (size: WorkerSize): LambdaFunction =>
      jobFunction(this, `Worker-${size}`, {
        description: `Outrider: runs one attempt, worker size ${size}`,
        code,
        memoryMb: workerSizes[size],
        timeout: Duration.minutes(15),
        environment: workerEnvironment(storage, this.userCredentials),
        logs: storage.jobLogs,
        role,
        ephemeralStorage: Size.mebibytes(scratchMb[size]),
        isPerTenant: props.config.tenantIsolation,
        onFailure,
        // As long as the scheduler waits for a claim: what is older nobody waits for any more.
        retries: { attempts: 0, maxAge: Duration.seconds(props.config.claimLeaseSeconds) },
        concurrency: props.config.workerConcurrency,
      });
    return {
      small: worker('small'),
      medium: worker('medium'),
      large: worker('large'),
      xlarge: worker('xlarge'),
    };
  }
}

/** All that workers may do by themselves, besides logs: read the session of a job whose word they were given. */
function grantSessions(grantee: IGrantable, table: Table): void {
  grantee.grantPrincipal.addToPrincipalPolicy(itemsOf(table, ['dynamodb:GetItem'], 'ACCESS#*'));
}

function workerEnvironment(storage: StorageStack, userCredentials: CfnParameter): Record<string, string> {
  return {
    [Setting.table]: storage.table.tableName,
    [Setting.dataBucket]: storage.dataBucket.bucketName,
    [Setting.userCredentials]: userCredentials.valueAsString,
    // Workers stream through many buffers of half a megabyte and more. By default glibc keeps freed ones of that
    // size in its heaps, which then only grow: resident memory was twice what was in use.
    MALLOC_MMAP_THRESHOLD_: '131072',
    MALLOC_TRIM_THRESHOLD_: '131072',
    MALLOC_ARENA_MAX: '2',
    // Records live for one batch: a small young generation collects them sooner, at the same speed. The worker
    // asks for a collection itself between attempts.
    NODE_OPTIONS: '--max-semi-space-size=4 --expose-gc',
  };
}
