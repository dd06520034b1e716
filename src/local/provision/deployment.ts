import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { LocalTaskDefinition } from '../ecs/model.ts';
import type { LocalRole } from '../iam/roles.ts';
import type { LocalFunction } from '../lambda/model.ts';
import type { LocalStateMachine } from '../sfn/states-api.ts';
import { type LocalApi, readApis } from './api-routes.ts';
import type { Assembly } from './assembly.ts';
import type { LocalRule } from '../events/event-bus.ts';
import { readRules } from './event-rules.ts';
import { provisionError } from './provision-error.ts';
import { propertiesOf } from './properties.ts';
import { RoleBook } from './roles.ts';
import {
  type ResolvedResource,
  type ResolvedStacks,
  type ResolveOptions,
  resolveStacks,
} from './resolved-stacks.ts';

/** A table, as DynamoDB's CreateTable takes it. */
export interface LocalTable {
  readonly name: string;
  readonly createTable: Readonly<Record<string, unknown>>;
  /** Partition key attributes, of the table by its name and of its indexes as `table/index/name`. */
  readonly partitionKeys: ReadonlyMap<string, string>;
}

/** A log group and whose logs it holds. */
export interface LocalLogGroup {
  readonly name: string;
  readonly functions: readonly string[];
  readonly taskFamilies: readonly string[];
}

/** What the servers of the embedded stack are started with. */
export interface LocalDeployment {
  readonly tables: readonly LocalTable[];
  readonly buckets: readonly string[];
  readonly functions: readonly LocalFunction[];
  readonly stateMachines: readonly LocalStateMachine[];
  readonly clusters: readonly string[];
  /** Capacity providers of each cluster, by its name. */
  readonly capacityProviders: ReadonlyMap<string, readonly string[]>;
  readonly taskDefinitions: readonly LocalTaskDefinition[];
  readonly apis: readonly LocalApi[];
  readonly rules: readonly LocalRule[];
  readonly logGroups: readonly LocalLogGroup[];
  readonly roles: readonly LocalRole[];
  /** ARN of the role of each function by its name, and of each task family. */
  readonly roleArns: ReadonlyMap<string, string>;
  /** ARNs of all roles that a task of a family runs with: its program's and its agent's. */
  readonly taskRoles: ReadonlyMap<string, readonly string[]>;
  /** Subnet id → name of its availability zone. */
  readonly subnetZones: ReadonlyMap<string, string>;
  /** Outputs of all stacks, exports apart. */
  readonly outputs: Readonly<Record<string, string>>;
}

/**
 * What an assembly's templates say is to be there.
 *
 * @throws ProvisionError naming the resource and the property at fault.
 */
export function planDeployment(assembly: Assembly, options: ResolveOptions): LocalDeployment {
  const resolved = resolveStacks(assembly, options);
  const of = (type: string): readonly ResolvedResource[] =>
    resolved.resources.filter((found) => found.type === type);
  const retries = eventInvokeConfigs(of('AWS::Lambda::EventInvokeConfig'), of('AWS::Lambda::Function'));
  const book = new RoleBook(of('AWS::IAM::Role'), of('AWS::IAM::Policy'));
  const functions = of('AWS::Lambda::Function').map((resource) =>
    readFunction(resource, { assembly, retries, book }),
  );
  const tasks = of('AWS::ECS::TaskDefinition').map((resource) =>
    readTaskDefinition(resource, { assembly, book }),
  );
  return {
    tables: of('AWS::DynamoDB::Table').map(readTable),
    buckets: [...of('AWS::S3::Bucket'), ...of('AWS::S3Express::DirectoryBucket')].map(
      ({ identity }) => identity.ref,
    ),
    functions: functions.map(({ fn }) => fn),
    stateMachines: of('AWS::StepFunctions::StateMachine').map(readStateMachine),
    clusters: of('AWS::ECS::Cluster').map(({ identity }) => identity.ref),
    capacityProviders: readProviders(
      of('AWS::ECS::Cluster'),
      of('AWS::ECS::ClusterCapacityProviderAssociations'),
    ),
    taskDefinitions: tasks.map(({ definition }) => definition),
    apis: readApis(resolved, options.region),
    rules: readRules(resolved),
    logGroups: readLogGroups(of('AWS::Logs::LogGroup'), functions, tasks),
    subnetZones: readSubnets(resolved),
    roles: book.roles,
    roleArns: new Map([
      ...functions.map(({ fn, roleArn }) => [fn.name, roleArn] as const),
      ...tasks.map(({ definition, roleArn }) => [definition.family, roleArn] as const),
    ]),
    taskRoles: new Map(tasks.map(({ definition, allRoles }) => [definition.family, allRoles])),
    outputs: resolved.outputs,
  };
}

const keySchema = z.array(z.looseObject({ AttributeName: z.string(), KeyType: z.enum(['HASH', 'RANGE']) }));
const indexes = z.array(z.looseObject({ IndexName: z.string(), KeySchema: keySchema })).optional();

const tableProperties = z.looseObject({
  KeySchema: keySchema,
  AttributeDefinitions: z.array(z.unknown()),
  BillingMode: z.literal('PAY_PER_REQUEST'),
  LocalSecondaryIndexes: indexes,
  GlobalSecondaryIndexes: indexes,
});

/** The time to live is left out: a local table lives as long as its directory. */
function readTable(resource: ResolvedResource): LocalTable {
  const { KeySchema, AttributeDefinitions, BillingMode, LocalSecondaryIndexes, GlobalSecondaryIndexes } =
    propertiesOf(resource, tableProperties);
  const name = resource.identity.ref;
  const hashOf = (schema: z.output<typeof keySchema>): string =>
    schema.find(({ KeyType }) => KeyType === 'HASH')?.AttributeName ?? '';
  const named = [...(LocalSecondaryIndexes ?? []), ...(GlobalSecondaryIndexes ?? [])];
  return {
    name,
    partitionKeys: new Map([
      [name, hashOf(KeySchema)],
      ...named.map((index) => [`${name}/index/${index.IndexName}`, hashOf(index.KeySchema)] as const),
    ]),
    createTable: {
      TableName: name,
      KeySchema,
      AttributeDefinitions,
      BillingMode,
      ...(LocalSecondaryIndexes === undefined ? {} : { LocalSecondaryIndexes }),
      ...(GlobalSecondaryIndexes === undefined ? {} : { GlobalSecondaryIndexes }),
    },
  };
}

const invokeConfigProperties = z.looseObject({
  FunctionName: z.string(),
  MaximumEventAgeInSeconds: z.number().default(21_600),
  MaximumRetryAttempts: z.union([z.literal(0), z.literal(1), z.literal(2)]).default(2),
  DestinationConfig: z
    .strictObject({ OnFailure: z.strictObject({ Destination: z.string() }).optional() })
    .optional(),
});

type InvokeConfig = Pick<LocalFunction, 'asyncRetries' | 'maxEventAgeMs' | 'onFailure'>;

function eventInvokeConfigs(
  resources: readonly ResolvedResource[],
  functions: readonly ResolvedResource[],
): ReadonlyMap<string, InvokeConfig> {
  return new Map(
    resources.map((resource): readonly [string, InvokeConfig] => {
      const found = propertiesOf(resource, invokeConfigProperties);
      const destination = found.DestinationConfig?.OnFailure?.Destination;
      const target = functions.find(({ identity }) => identity.attributes['Arn'] === destination);
      if (destination !== undefined && target === undefined) {
        const where = `${resource.where} Properties.DestinationConfig.OnFailure.Destination`;
        throw provisionError(where, `no function is ${destination}`);
      }
      return [
        found.FunctionName,
        {
          asyncRetries: found.MaximumRetryAttempts,
          maxEventAgeMs: found.MaximumEventAgeInSeconds * 1_000,
          ...(target === undefined ? {} : { onFailure: target.identity.ref }),
        },
      ];
    }),
  );
}

const functionProperties = z.looseObject({
  Runtime: z.literal('nodejs24.x', 'must be nodejs24.x: the embedded stack runs no other'),
  Handler: z.string().regex(/^[^.]+\.\w+$/, 'must be <file>.<export>'),
  Code: z.looseObject({ S3Key: z.string() }),
  Role: z.string(),
  MemorySize: z.number().default(128),
  Timeout: z.number().default(3),
  Environment: z
    .looseObject({ Variables: z.record(z.string(), z.string()).default({}) })
    .default({ Variables: {} }),
  ReservedConcurrentExecutions: z.number().optional(),
  TenancyConfig: z.strictObject({ TenantIsolationMode: z.literal('PER_TENANT') }).optional(),
  LoggingConfig: z.looseObject({ LogGroup: z.string().optional() }).optional(),
});

interface FunctionWithLogs {
  readonly fn: LocalFunction;
  readonly roleArn: string;
  readonly logGroup: string;
}

function readFunction(
  resource: ResolvedResource,
  {
    assembly,
    retries,
    book,
  }: {
    readonly assembly: Assembly;
    readonly retries: ReadonlyMap<string, InvokeConfig>;
    readonly book: RoleBook;
  },
): FunctionWithLogs {
  const found = propertiesOf(resource, functionProperties);
  const codeDir = assembly.files.get(found.Code.S3Key);
  if (codeDir === undefined) {
    throw provisionError(`${resource.where} Properties.Code`, `there is no asset "${found.Code.S3Key}"`);
  }
  const module = found.Handler.split('.')[0] ?? '';
  if (!['mjs', 'js', 'cjs'].some((extension) => existsSync(join(codeDir, `${module}.${extension}`)))) {
    throw provisionError(`${resource.where} Properties.Handler`, `the asset holds no module "${module}"`);
  }
  const name = resource.identity.ref;
  const reserved = found.ReservedConcurrentExecutions;
  return {
    logGroup: found.LoggingConfig?.LogGroup ?? `/aws/lambda/${name}`,
    roleArn: book.arnFor(found.Role, 'lambda.amazonaws.com', `${resource.where} Properties.Role`),
    fn: {
      name,
      codeDir,
      handler: found.Handler,
      timeoutMs: found.Timeout * 1_000,
      memoryMb: found.MemorySize,
      environment: found.Environment.Variables,
      ...(retries.get(name) ?? { asyncRetries: 2, maxEventAgeMs: 21_600_000 }),
      ...(reserved === undefined ? {} : { reservedConcurrency: reserved }),
      ...(found.TenancyConfig === undefined ? {} : { isPerTenant: true }),
    },
  };
}

const stateMachineProperties = z.looseObject({
  DefinitionString: z.string(),
  StateMachineType: z.literal('STANDARD').default('STANDARD'),
});

function readStateMachine(resource: ResolvedResource): LocalStateMachine {
  const { DefinitionString, StateMachineType } = propertiesOf(resource, stateMachineProperties);
  let definition: unknown;
  try {
    definition = JSON.parse(DefinitionString);
  } catch (cause) {
    throw provisionError(`${resource.where} Properties.DefinitionString`, `is no JSON: ${String(cause)}`);
  }
  if (typeof definition !== 'object' || definition === null) {
    throw provisionError(`${resource.where} Properties.DefinitionString`, 'is no object');
  }
  const { ref, attributes } = resource.identity;
  return { name: attributes['Name'] ?? ref, arn: ref, definition, type: StateMachineType };
}

const providers = z.looseObject({ CapacityProviders: z.array(z.string()).default([]) });
const offer = providers.extend({ Cluster: z.string() });

/** Those that a cluster is made with, and those that it is given. */
function readProviders(
  clusters: readonly ResolvedResource[],
  offers: readonly ResolvedResource[],
): ReadonlyMap<string, readonly string[]> {
  const given = offers.map((resource) => propertiesOf(resource, offer));
  return new Map(
    clusters.map((resource) => {
      const name = resource.identity.ref;
      const ofIts = given.flatMap((each) => (each.Cluster === name ? each.CapacityProviders : []));
      return [name, [...propertiesOf(resource, providers).CapacityProviders, ...ofIts]];
    }),
  );
}

const taskProperties = z.looseObject({
  Family: z.string().optional(),
  Memory: z.coerce.number(),
  TaskRoleArn: z.string(),
  ExecutionRoleArn: z.string().optional(),
  ContainerDefinitions: z.tuple([
    z.looseObject({
      Name: z.string(),
      Image: z.string(),
      Command: z.array(z.string()).optional(),
      Environment: z.array(z.object({ Name: z.string(), Value: z.string() })).default([]),
      LogConfiguration: z.looseObject({ Options: z.record(z.string(), z.string()).default({}) }).optional(),
    }),
  ]),
});

interface TaskWithLogs {
  readonly roleArn: string;
  readonly allRoles: readonly string[];
  readonly definition: LocalTaskDefinition;
  readonly logGroup: string | undefined;
}

/** Runs the image's program straight from the directory that the image would be built from. */
function readTaskDefinition(
  resource: ResolvedResource,
  { assembly, book }: { readonly assembly: Assembly; readonly book: RoleBook },
): TaskWithLogs {
  const found = propertiesOf(resource, taskProperties);
  const [container] = found.ContainerDefinitions;
  const where = `${resource.where} Properties.ContainerDefinitions.0`;
  const directory = assembly.images.get(container.Image.slice(container.Image.lastIndexOf(':') + 1));
  if (directory === undefined)
    throw provisionError(`${where}.Image`, `there is no image asset "${container.Image}"`);
  const main = join(directory, 'main.mjs');
  if (!existsSync(main)) throw provisionError(`${where}.Image`, 'the image asset holds no "main.mjs"');
  const arn = resource.identity.ref;
  const { TaskRoleArn, ExecutionRoleArn } = found;
  return {
    roleArn: book.arnFor(TaskRoleArn, 'ecs-tasks.amazonaws.com', `${resource.where} Properties.TaskRoleArn`),
    allRoles: [TaskRoleArn, ...(ExecutionRoleArn === undefined ? [] : [ExecutionRoleArn])],
    logGroup: container.LogConfiguration?.Options['awslogs-group'],
    definition: {
      family: found.Family ?? arn.slice(arn.lastIndexOf('/') + 1, arn.lastIndexOf(':')),
      arn,
      containerName: container.Name,
      command: container.Command ?? ['node', main],
      cwd: directory,
      environment: Object.fromEntries(container.Environment.map(({ Name, Value }) => [Name, Value])),
      memoryMb: found.Memory,
    },
  };
}

function readLogGroups(
  resources: readonly ResolvedResource[],
  functions: readonly FunctionWithLogs[],
  tasks: readonly TaskWithLogs[],
): LocalLogGroup[] {
  const named = resources.map(({ identity }) => identity.ref);
  const used = functions.map(({ logGroup }) => logGroup);
  return [...new Set([...named, ...used])].map((name) => ({
    name,
    functions: functions.filter(({ logGroup }) => logGroup === name).map(({ fn }) => fn.name),
    taskFamilies: tasks
      .filter(({ logGroup }) => logGroup === name)
      .map(({ definition }) => definition.family),
  }));
}

const subnetProperties = z.looseObject({ AvailabilityZone: z.string() });

function readSubnets({ resources }: ResolvedStacks): Map<string, string> {
  return new Map(
    resources
      .filter(({ type }) => type === 'AWS::EC2::Subnet')
      .map((resource) => [resource.identity.ref, propertiesOf(resource, subnetProperties).AvailabilityZone]),
  );
}
