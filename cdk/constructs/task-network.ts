import { CfnCondition, Fn, Stack } from 'aws-cdk-lib';
import {
  CfnSecurityGroup,
  CfnSecurityGroupIngress,
  CfnSubnet,
  CfnVPCEndpoint,
  GatewayVpcEndpointAwsService,
  type ISubnet,
  SubnetType,
  Vpc,
} from 'aws-cdk-lib/aws-ec2';
import type { Construct } from 'constructs';
import type { OutriderConfig } from '../config.ts';
import { acknowledge } from './acknowledge.ts';
import { zonalStorage } from './zonal-storage.ts';

/** Where Fargate tasks run. */
export interface TaskNetwork {
  /** Ids. */
  readonly subnets: readonly string[];
  /** Names of their zones, in their order; empty where nobody has told them. */
  readonly zones: readonly string[];
  /** Ids of these zones, which are other ones in each account; empty where nobody has told them. */
  readonly zoneIds: readonly string[];
  readonly securityGroups: readonly string[];
  /** Whether tasks get public addresses, without which those in public subnets would reach nothing. */
  readonly publicIps: boolean;
}

/** The network that the configuration gives, or one of the deployment's own. */
export function taskNetwork(scope: Construct, config: OutriderConfig): TaskNetwork {
  const { subnets, subnetZones = [], securityGroups, vpcId, publicIps = false } = config;
  if (subnets !== undefined) {
    const groups = securityGroups ?? (vpcId === undefined ? [] : [securityGroup(scope, vpcId)]);
    const zones = subnetZones.map(({ name }) => name);
    return {
      ...{ subnets, zones, securityGroups: groups, publicIps },
      zoneIds: subnetZones.flatMap(({ id }) => id ?? []),
    };
  }
  const vpc = ownNetwork(scope, config);
  addZonalEndpoint(scope, vpc, config);
  const own = vpc.publicSubnets.map(resourceOf);
  return {
    subnets: own.map(({ ref }) => ref),
    zones: own.map(({ availabilityZone, attrAvailabilityZone }) => availabilityZone ?? attrAvailabilityZone),
    // CloudFormation knows them once the subnets are there.
    zoneIds: own.map(({ attrAvailabilityZoneId }) => attrAvailabilityZoneId),
    securityGroups: [securityGroup(scope, vpc.vpcId)],
    publicIps: true,
  };
}

function resourceOf({ node }: ISubnet): CfnSubnet {
  const { defaultChild } = node;
  if (!CfnSubnet.isCfnSubnet(defaultChild)) throw new Error(`${node.path} is no subnet of its own`);
  return defaultChild;
}

/** Names and ids of the zones of a network, as tasks are told: `us-east-1a=use1-az4,…`; empty where nobody has told the ids. */
export const zoneIdsText = ({ zones, zoneIds }: TaskNetwork): string =>
  [...new Set(zoneIds.map((id, place) => `${zones[place] ?? ''}=${id}`))].join(',');

/** The port at which tasks answer each other, for what they keep. */
export const keeperPort = 7843;

function securityGroup(scope: Construct, vpcId: string): string {
  const group = new CfnSecurityGroup(scope, 'TaskSecurityGroup', {
    vpcId,
    // Not said anew, since another description would replace a group that tasks are in.
    groupDescription: 'Outrider tasks: nothing comes in',
    securityGroupEgress: [{ ipProtocol: '-1', cidrIp: '0.0.0.0/0', description: 'AWS services' }],
  });
  const groupId = group.attrGroupId;
  // A rule apart: within the group it would name itself.
  new CfnSecurityGroupIngress(scope, 'TaskToTask', {
    groupId,
    sourceSecurityGroupId: groupId,
    ipProtocol: 'tcp',
    fromPort: keeperPort,
    toPort: keeperPort,
    description: 'Outputs that tasks keep for each other',
  });
  return groupId;
}

/**
 * Public subnets without NAT: tasks open connections to AWS and each other, accept none from elsewhere, and a NAT gateway costs
 * more than many a job; S3 and DynamoDB go through gateway endpoints, which cost nothing.
 */
function ownNetwork(scope: Construct, { taskZones }: OutriderConfig): Vpc {
  const vpc = new Vpc(scope, 'Network', {
    natGateways: 0,
    // Places that the ids take: the construct knows zones by their names alone.
    ...(taskZones === undefined
      ? { maxAzs: 3 }
      : { availabilityZones: taskZones.map((_, place) => Fn.select(place, Fn.getAzs())) }),
    subnetConfiguration: [{ name: 'tasks', subnetType: SubnetType.PUBLIC }],
    gatewayEndpoints: {
      s3: { service: GatewayVpcEndpointAwsService.S3 },
      dynamodb: { service: GatewayVpcEndpointAwsService.DYNAMODB },
    },
  });
  for (const [place, subnet] of vpc.publicSubnets.map(resourceOf).entries()) {
    const zoneId = taskZones?.[place];
    if (zoneId === undefined) continue;
    // Of the two, EC2 takes one.
    subnet.availabilityZone = undefined;
    subnet.availabilityZoneId = zoneId;
  }
  acknowledge(vpc, {
    'AwsSolutions-VPC7':
      'Tasks accept connections from each other alone; flow logs would only repeat the log of S3.',
  });
  return vpc;
}

/**
 * The way to directory buckets, which S3's own gateway does not lead to; free as that is. Where the deployment has zones of
 * the tier `zonal`, since not each region has that service.
 */
function addZonalEndpoint(scope: Construct, vpc: Vpc, config: OutriderConfig): void {
  const { buckets } = zonalStorage(Stack.of(scope), config);
  const endpoint = new CfnVPCEndpoint(scope, 'ZonalEndpoint', {
    vpcId: vpc.vpcId,
    serviceName: GatewayVpcEndpointAwsService.S3_EXPRESS.name,
    vpcEndpointType: 'Gateway',
    routeTableIds: vpc.publicSubnets.map(({ routeTable }) => routeTable.routeTableId),
  });
  endpoint.cfnOptions.condition = new CfnCondition(scope, 'HasZonalZone', {
    expression: Fn.conditionOr(...buckets.map(({ isThere }) => isThere)),
  });
}
