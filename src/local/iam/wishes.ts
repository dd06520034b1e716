import * as z from 'zod';
import { isDirectoryBucket } from '../../contracts/directory-buckets.ts';
import type { RequestFacts } from '../http/principals.ts';
import type { Wish } from './evaluate.ts';
import { conditionKey } from './policy.ts';

/** What of the deployment tells a request's ARNs. */
export interface Surroundings {
  readonly region: string;
  readonly accountId: string;
  /** Partition key attribute of each table, and of each of its indexes as `table/index/name`. */
  readonly partitionKeys: ReadonlyMap<string, string>;
  /** Roles that a task of a family runs with, which whoever starts one must be allowed to pass on. */
  readonly taskRoles: ReadonlyMap<string, readonly string[]>;
}

/** What a request wants, and the values of condition keys that go with it. */
export interface Wishes {
  readonly wishes: readonly Wish[];
  readonly context: ReadonlyMap<string, readonly string[]>;
}

type Reader = (facts: RequestFacts, around: Surroundings) => Wishes;

/** What is not known is asked for under its own name, on everything: no policy that names resources allows it. */
const unknownWish = ({ service, operation }: RequestFacts): Wishes => ({
  wishes: [{ action: `${service}:${operation}`, resource: '*' }],
  context: new Map(),
});

const wish = (
  action: string,
  resource: string,
  context: Readonly<Record<string, readonly string[]>> = {},
): Wishes => ({
  wishes: [{ action, resource }],
  context: new Map(Object.entries(context).map(([key, values]) => [conditionKey(key), values])),
});

const arnOf = ({ region, accountId }: Surroundings, service: string, resource: string): string =>
  resource.startsWith('arn:') ? resource : `arn:aws:${service}:${region}:${accountId}:${resource}`;

const s3Arn = (resource: string): string => `arn:aws:s3:::${resource}`;

/** Actions of S3's operations, where they are not called alike. */
const s3Actions: Readonly<Record<string, string>> = {
  ListBuckets: 'ListAllMyBuckets',
  HeadBucket: 'ListBucket',
  ListObjectsV2: 'ListBucket',
  ListMultipartUploads: 'ListBucketMultipartUploads',
  HeadObject: 'GetObject',
  CopyObject: 'PutObject',
  CreateMultipartUpload: 'PutObject',
  UploadPart: 'PutObject',
  UploadPartCopy: 'PutObject',
  CompleteMultipartUpload: 'PutObject',
  HandRoom: 'PutObject',
  HandPart: 'PutObject',
  ListParts: 'ListMultipartUploadParts',
};

/** On a directory bucket all that is not done in a session is allowed by the right to make one. */
function readDirectory({ operation, headers }: RequestFacts, bucket: string, around: Surroundings): Wishes {
  const isBucket = operation === 'CreateBucket' || operation === 'DeleteBucket';
  return wish(
    `s3express:${isBucket ? operation : 'CreateSession'}`,
    arnOf(around, 's3express', `bucket/${bucket}`),
    isBucket ? {} : { 's3express:SessionMode': [headers?.get('x-amz-create-session-mode') ?? 'ReadWrite'] },
  );
}

/** What copying from an object wants besides: of a directory bucket a session, for which it is enough to read. */
function readSource(source: string, around: Surroundings): Wish {
  const [bucket = ''] = source.split('/', 1);
  return isDirectoryBucket(bucket)
    ? {
        action: 's3express:CreateSession',
        resource: arnOf(around, 's3express', `bucket/${bucket}`),
        context: new Map([[conditionKey('s3express:SessionMode'), ['ReadOnly']]]),
      }
    : { action: 's3:GetObject', resource: s3Arn(source) };
}

const readS3: Reader = (facts, around) => {
  const { operation, resource, query, headers } = facts;
  const [bucket = ''] = resource.split('/', 1);
  // Each of its keys is asked for by itself, as a deletion or a reading of that object.
  if (operation === 'DeleteObjects' || operation === 'HandFiles') return { wishes: [], context: new Map() };
  const prefix = query?.get('prefix');
  const context = operation.startsWith('List') ? { 's3:prefix': [prefix ?? ''] } : {};
  const found = isDirectoryBucket(bucket)
    ? readDirectory(facts, bucket, around)
    : wish(`s3:${s3Actions[operation] ?? operation}`, resource === '' ? '*' : s3Arn(resource), context);
  const source = headers?.get('x-amz-copy-source');
  if (source === undefined) return found;
  return { ...found, wishes: [...found.wishes, readSource(sourceOf(source), around)] };
};

/** What is not well encoded names no object that a policy could mean. */
function sourceOf(header: string): string {
  try {
    return decodeURIComponent(header.replace(/\?versionId=.*$/, '')).replace(/^\//, '');
  } catch {
    return header;
  }
}

const value = z.looseObject({ S: z.string().optional() });
const item = z.record(z.string(), value);
const dynamoInput = z.looseObject({
  TableName: z.string().optional(),
  IndexName: z.string().optional(),
  Key: item.optional(),
  Item: item.optional(),
  KeyConditionExpression: z.string().optional(),
  ExpressionAttributeNames: z.record(z.string(), z.string()).default({}),
  ExpressionAttributeValues: item.default({}),
  RequestItems: z.record(z.string(), z.looseObject({ Keys: z.array(item).default([]) })).optional(),
});
type DynamoInput = z.output<typeof dynamoInput>;

/** Only the operations that the stores use have leading keys here; others have none, and so fit no pattern of them. */
const readDynamo: Reader = (facts, around) => {
  const parsed = dynamoInput.safeParse(facts.input);
  if (!parsed.success) return unknownWish(facts);
  const input = parsed.data;
  const tables = input.RequestItems === undefined ? [input.TableName ?? ''] : Object.keys(input.RequestItems);
  const index = input.IndexName === undefined ? '' : `/index/${input.IndexName}`;
  const keys = leadingKeys(facts.operation, input, around);
  return {
    wishes: tables.map((table) => ({
      action: `dynamodb:${facts.operation}`,
      resource: arnOf(around, 'dynamodb', `table/${table.slice(table.lastIndexOf('/') + 1)}${index}`),
    })),
    context: keys.length === 0 ? new Map() : new Map([['dynamodb:leadingkeys', keys]]),
  };
};

/** Empty where the request names no partition, or one of them cannot be told. */
function leadingKeys(
  operation: string,
  input: DynamoInput,
  { partitionKeys }: Surroundings,
): readonly string[] {
  const nameIn = (table: string): string =>
    partitionKeys.get(input.IndexName === undefined ? table : `${table}/index/${input.IndexName}`) ?? '';
  const keyOf = (table: string, found: DynamoInput['Key']): string | undefined => found?.[nameIn(table)]?.S;
  const { TableName: table = '' } = input;
  let keys: readonly (string | undefined)[] = [];
  if (operation === 'BatchGetItem') {
    keys = Object.entries(input.RequestItems ?? {}).flatMap(([name, { Keys }]) =>
      Keys.map((key) => keyOf(name, key)),
    );
  } else if (operation === 'PutItem') keys = [keyOf(table, input.Item)];
  else if (['GetItem', 'UpdateItem', 'DeleteItem'].includes(operation)) keys = [keyOf(table, input.Key)];
  else if (operation === 'Query') keys = [partitionOfQuery(nameIn(table), input)];
  const known = keys.filter((key) => key !== undefined);
  return known.length === keys.length ? known : [];
}

/** The value that a query's condition sets its partition key equal to. */
function partitionOfQuery(name: string, input: DynamoInput): string | undefined {
  const equals = /([#\w]+)\s*=\s*(:\w+)/g;
  for (const [, attribute = '', placeholder = ''] of (input.KeyConditionExpression ?? '').matchAll(equals)) {
    if ((input.ExpressionAttributeNames[attribute] ?? attribute) === name)
      return input.ExpressionAttributeValues[placeholder]?.S;
  }
  return undefined;
}

const lambdaName = (nameOrArn: string): string =>
  /(?:^|function:)([\w-]+)(?::[\w$-]+)?$/.exec(nameOrArn)?.[1] ?? nameOrArn;

const readLambda: Reader = ({ operation, resource }, around) =>
  wish(
    operation === 'Invoke' ? 'lambda:InvokeFunction' : `lambda:${operation}`,
    arnOf(around, 'lambda', `function:${lambdaName(resource)}`),
  );

const ecsInput = z.looseObject({
  cluster: z.string().default('default'),
  taskDefinition: z.string().default(''),
  task: z.string().default(''),
  tasks: z.array(z.string()).default([]),
});

const lastPart = (nameOrArn: string): string => nameOrArn.slice(nameOrArn.lastIndexOf('/') + 1);

const readEcs: Reader = (facts, around) => {
  const parsed = ecsInput.safeParse(facts.input);
  if (!parsed.success) return unknownWish(facts);
  const cluster = lastPart(parsed.data.cluster);
  const context = { 'ecs:cluster': [arnOf(around, 'ecs', `cluster/${cluster}`)] };
  if (facts.operation === 'StopTask') {
    const task = arnOf(around, 'ecs', `task/${cluster}/${lastPart(parsed.data.task)}`);
    return wish('ecs:StopTask', task, context);
  }
  if (facts.operation === 'DescribeTasks') {
    const tasks = parsed.data.tasks.map((task) => arnOf(around, 'ecs', `task/${cluster}/${lastPart(task)}`));
    return {
      ...wish('ecs:DescribeTasks', '', context),
      wishes: tasks.map((resource) => ({ action: 'ecs:DescribeTasks', resource })),
    };
  }
  if (facts.operation !== 'RunTask') return unknownWish(facts);
  const [family = '', revision = '1'] = lastPart(parsed.data.taskDefinition).split(':');
  const run = wish('ecs:RunTask', arnOf(around, 'ecs', `task-definition/${family}:${revision}`), {
    ...context,
    'iam:PassedToService': ['ecs-tasks.amazonaws.com'],
  });
  const passed = around.taskRoles.get(family) ?? [];
  return {
    ...run,
    wishes: [...run.wishes, ...passed.map((role) => ({ action: 'iam:PassRole', resource: role }))],
  };
};

const readers: Readonly<Record<string, Reader>> = {
  s3: readS3,
  dynamodb: readDynamo,
  lambda: readLambda,
  ecs: readEcs,
  states: (facts) =>
    facts.resource === '' ? unknownWish(facts) : wish(`states:${facts.operation}`, facts.resource),
};

/** What a request to a service of the embedded stack wants, in the terms of IAM. */
export const wishesOf: Reader = (facts, around) => (readers[facts.service] ?? unknownWish)(facts, around);
