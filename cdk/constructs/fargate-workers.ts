import { Duration } from 'aws-cdk-lib';
import {
  CfnCluster,
  CfnClusterCapacityProviderAssociations,
  CpuArchitecture,
  FargateTaskDefinition,
  LinuxParameters,
  LogDriver,
  OperatingSystemFamily,
} from 'aws-cdk-lib/aws-ecs';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { Setting } from '../../src/contracts/settings.ts';
import type { OutriderConfig } from '../config.ts';
import { physicalName } from '../names.ts';
import { acknowledge } from './acknowledge.ts';
import { mainImage } from './bundle.ts';
import { keeperPort, type TaskNetwork, taskNetwork, zoneIdsText } from './task-network.ts';

/** Name of the one container of the Fargate task. */
export const workerContainer = 'worker';

/** What Fargate tasks run in and by; only where a deployment has it. */
export interface FargateWorkers {
  /** Where tasks run. */
  readonly network: TaskNetwork;
  /**
   * Family of the task definition. Other stacks name the family and not a revision: an exported ARN could never
   * change while they import it, and every new image makes a new one.
   */
  readonly family: string;
  readonly cluster: CfnCluster;
  readonly taskDefinition: FargateTaskDefinition;
}

export interface FargateWorkersProps {
  readonly environment: Record<string, string>;
  readonly logs: ILogGroup;
  readonly config: OutriderConfig;
}

/** Network, cluster and task of the workers on Fargate. Its image is built by Docker when it is deployed. */
export function fargateWorkers(scope: Construct, props: FargateWorkersProps): FargateWorkers {
  const network = taskNetwork(scope, props.config);
  const family = physicalName(props.config, 'worker');
  const cluster = workerCluster(scope);
  const taskDefinition = workerTask(scope, family, network, props);
  if (props.config.fargate === 'spot') offerSpot(scope, cluster, taskDefinition);
  return { network, family, cluster, taskDefinition };
}

/**
 * A cluster that names no capacity providers: with them its creation wants the service-linked role of ECS at once, and
 * fails in an account that never had a cluster. Without them ECS makes that role as it makes the cluster.
 */
function workerCluster(scope: Construct): CfnCluster {
  const cluster = new CfnCluster(scope, 'Cluster');
  acknowledge(cluster, {
    'AwsSolutions-ECS4':
      'Attempts report their own time, memory and bytes; Container Insights bills each task again.',
  });
  return cluster;
}

/**
 * Lets tasks ask for Spot. Comes last of all, so that the service-linked role, which it needs, has come with the
 * cluster by then.
 */
function offerSpot(scope: Construct, cluster: CfnCluster, after: FargateTaskDefinition): void {
  const offer = new CfnClusterCapacityProviderAssociations(scope, 'CapacityProviders', {
    cluster: cluster.ref,
    capacityProviders: ['FARGATE', 'FARGATE_SPOT'],
    // Each task says by itself what it runs on.
    defaultCapacityProviderStrategy: [],
  });
  offer.node.addDependency(after);
}

function workerTask(
  scope: Construct,
  family: string,
  network: TaskNetwork,
  { environment, logs, config }: FargateWorkersProps,
): FargateTaskDefinition {
  const definition = new FargateTaskDefinition(scope, 'Task', {
    family,
    cpu: 1024,
    memoryLimitMiB: 4096,
    runtimePlatform: {
      cpuArchitecture: CpuArchitecture.ARM64,
      operatingSystemFamily: OperatingSystemFamily.LINUX,
    },
  });
  definition.addContainer(workerContainer, {
    image: mainImage(scope, 'TaskImage', 'worker', {
      processes: ['worker/user-code-host'],
      native: config.duckdb,
      baseImage: config.fargateImage,
    }),
    environment: {
      ...environment,
      [Setting.keeperPort]: String(keeperPort),
      ...(network.zoneIds.length === 0 ? {} : { [Setting.zoneIds]: zoneIdsText(network) }),
    },
    // As the first process of a container Node cannot abort: one whose heap is full would end as if by a segmentation fault.
    linuxParameters: new LinuxParameters(scope, 'TaskInit', { initProcessEnabled: true }),
    logging: LogDriver.awsLogs({ logGroup: logs, streamPrefix: 'fargate' }),
    // Spot gives two minutes, which is what ECS allows at most.
    stopTimeout: config.fargate === 'spot' ? Duration.minutes(2) : Duration.seconds(30),
  });
  acknowledge(definition, {
    'AwsSolutions-IAM5[Resource::*]': 'The token of the image registry has no resource to name.',
    'AwsSolutions-ECS2': 'The environment holds names of resources and no secrets.',
  });
  return definition;
}
