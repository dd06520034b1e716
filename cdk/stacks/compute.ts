import { CfnParameter, Duration, Size, Stack, type StackProps } from 'aws-cdk-lib';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import {
  CfnCluster,
  CpuArchitecture,
  FargateTaskDefinition,
  LogDriver,
  OperatingSystemFamily,
} from 'aws-cdk-lib/aws-ecs';
import type { IGrantable } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { workerSizes } from '../../src/contracts/job-spec.ts';
import { ParameterName, Setting } from '../../src/contracts/settings.ts';
import type { OutriderConfig } from '../config.ts';
import { acknowledge } from '../constructs/acknowledge.ts';
import { handlerCode, mainImage } from '../constructs/bundle.ts';
import { itemsOf } from '../constructs/grants.ts';
import { functionRole, jobFunction } from '../constructs/job-function.ts';
import { type TaskNetwork, taskNetwork } from '../constructs/task-network.ts';
import { physicalName } from '../names.ts';
import type { StorageStack } from './storage.ts';

export interface ComputeStackProps extends StackProps {
  readonly config: OutriderConfig;
  readonly storage: StorageStack;
}

/** Name of the one container of the Fargate task. */
export const workerContainer = 'worker';

type WorkerSize = keyof typeof workerSizes;

/** Scratch space grows with memory: a sort spills what memory does not hold. */
const scratchMb: Readonly<Record<WorkerSize, number>> = {
  small: 2_048,
  medium: 4_096,
  large: 8_192,
  xlarge: 10_240,
};

/** What runs attempts: a Lambda function for each size of worker, and a Fargate task for what outlasts Lambda. */
export class ComputeStack extends Stack {
  /** Whether stages may ask for credentials: `true` or `false`. */
  readonly userCredentials: CfnParameter;
  readonly workers: Readonly<Record<WorkerSize, LambdaFunction>>;
  /** Where tasks run. */
  readonly network: TaskNetwork;
  /**
   * Family of the task definition. Other stacks name the family and not a revision: an exported ARN could never
   * change while they import it, and every new image makes a new one.
   */
  readonly workerFamily: string;
  readonly cluster: CfnCluster;
  readonly taskDefinition: FargateTaskDefinition;

  constructor(scope: Construct, id: string, props: ComputeStackProps) {
    super(scope, id, { description: 'Outrider: workers on Lambda and Fargate', ...props });
    this.userCredentials = new CfnParameter(this, ParameterName.userCredentials, {
      allowedValues: ['true', 'false'],
      default: 'false',
      description: 'Whether stages may ask for the credentials of workers for their user code and programs',
    });
    this.workers = this.addWorkerFunctions(props);
    this.network = taskNetwork(this, props.config);
    this.workerFamily = physicalName(props.config, 'worker');
    this.cluster = this.addCluster();
    this.taskDefinition = this.addTaskDefinition(props);
  }

  private addWorkerFunctions(props: ComputeStackProps): Record<WorkerSize, LambdaFunction> {
    const { storage } = props;
    const role = functionRole(this, 'WorkerRole', storage.jobLogs);
    grantSessions(role, storage.table);
    const code = handlerCode('worker', ['worker/user-code-host']);
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
      });
    return {
      small: worker('small'),
      medium: worker('medium'),
      large: worker('large'),
      xlarge: worker('xlarge'),
    };
  }

  private addCluster(): CfnCluster {
    const cluster = new CfnCluster(this, 'Cluster', { capacityProviders: ['FARGATE', 'FARGATE_SPOT'] });
    acknowledge(cluster, {
      'AwsSolutions-ECS4':
        'Attempts report their own time, memory and bytes; Container Insights bills each task again.',
    });
    return cluster;
  }

  private addTaskDefinition(props: ComputeStackProps): FargateTaskDefinition {
    const { storage } = props;
    const definition = new FargateTaskDefinition(this, 'Task', {
      family: this.workerFamily,
      cpu: 1024,
      memoryLimitMiB: 4096,
      runtimePlatform: {
        cpuArchitecture: CpuArchitecture.ARM64,
        operatingSystemFamily: OperatingSystemFamily.LINUX,
      },
    });
    definition.addContainer(workerContainer, {
      image: mainImage(this, 'TaskImage', 'worker', ['worker/user-code-host']),
      environment: workerEnvironment(storage, this.userCredentials),
      logging: LogDriver.awsLogs({ logGroup: storage.jobLogs, streamPrefix: 'fargate' }),
      stopTimeout: Duration.seconds(30),
    });
    grantSessions(definition.taskRole, storage.table);
    acknowledge(definition, {
      'AwsSolutions-IAM5[Resource::*]': 'The token of the image registry has no resource to name.',
      'AwsSolutions-ECS2': 'The environment holds names of resources and no secrets.',
    });
    return definition;
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
