import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DescribeTasksCommand, ECSClient } from '@aws-sdk/client-ecs';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { DescribeStateMachineCommand, SFNClient } from '@aws-sdk/client-sfn';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FaultSubject } from '../../src/local/http/fault-hook.ts';
import { type LocalStack, startLocalStack } from '../../src/local/stack.ts';
import { scratchDirectory } from './local-stack-support.ts';

const SYNTHESIS_LIMIT_MS = 180_000;

const requests: FaultSubject[] = [];
let state: Awaited<ReturnType<typeof scratchDirectory>>;
let stack: LocalStack;

beforeAll(async () => {
  state = await scratchDirectory();
  stack = await startLocalStack({
    stateDir: state.path,
    slots: 3,
    onRequest: (request) => {
      requests.push(request);
      return undefined;
    },
  });
}, SYNTHESIS_LIMIT_MS);

afterAll(async () => {
  await stack.stop();
  await state.remove();
});

const client = (
  service: string,
): { region: string; endpoint: string; credentials: LocalStack['credentials'] } => ({
  region: stack.region,
  endpoint: stack.environment[`AWS_ENDPOINT_URL_${service}`] ?? '',
  credentials: stack.credentials,
});

const output = (name: string): string => stack.outputs[name] ?? '';

describe('the embedded stack', () => {
  it('has the table of the template, with its indexes', async () => {
    const { Table: table } = await new DynamoDBClient(client('DYNAMODB')).send(
      new DescribeTableCommand({ TableName: output('TableName') }),
    );
    expect(table?.KeySchema).toEqual([
      { AttributeName: 'pk', KeyType: 'HASH' },
      { AttributeName: 'sk', KeyType: 'RANGE' },
    ]);
    expect(table?.LocalSecondaryIndexes ?? []).toEqual([]);
    expect(table?.GlobalSecondaryIndexes).toMatchObject([
      { IndexName: 'by-creation', Projection: { ProjectionType: 'KEYS_ONLY' } },
    ]);
  });

  it('has the data bucket', async () => {
    const s3 = new S3Client({ ...client('S3'), forcePathStyle: true });
    const answer = await s3.send(new HeadBucketCommand({ Bucket: output('DataBucketName') }));
    expect(answer.$metadata.httpStatusCode).toBe(200);
  });

  it('has the state machine, whose steps are functions that are there', async () => {
    const { definition = '' } = await new SFNClient(client('SFN')).send(
      new DescribeStateMachineCommand({ stateMachineArn: output('StateMachineArn') }),
    );
    const names = [...definition.matchAll(/:function:([\w-]+)/g)].map(([, name]) => name);
    expect(names).toHaveLength(4);
    const lambda = new LambdaClient(client('LAMBDA'));
    for (const name of names) {
      const answer = await lambda.send(new InvokeCommand({ FunctionName: name, InvocationType: 'DryRun' }));
      expect(answer.StatusCode).toBe(204);
    }
  });

  it('has the cluster', async () => {
    const tasks = [`arn:aws:ecs:us-east-1:000000000000:task/OutriderCompute-Cluster/${'0'.repeat(32)}`];
    const { failures } = await new ECSClient(client('ECS')).send(
      new DescribeTasksCommand({ cluster: 'OutriderCompute-Cluster', tasks }),
    );
    expect(failures?.map(({ reason }) => reason)).toEqual(['MISSING']);
  });

  it('answers at the address in its outputs, and only to signed requests', async () => {
    expect(output('ApiUrl')).toBe(`${stack.apiUrl}/`);
    const response = await fetch(`${stack.apiUrl}/jobs`);
    expect([response.status, await response.json()]).toEqual([
      403,
      { message: 'Missing Authentication Token' },
    ]);
  });

  it('finds the lines of a job in the logs of its functions and tasks', async () => {
    const logs = join(state.path, 'logs');
    const line = (at: string, jobId: string): string => `${JSON.stringify({ at, level: 'info', jobId })}\n`;
    for (const [directory, at] of [
      [join(logs, 'ecs', 'outrider-worker'), '2026-01-01T00:00:02.000Z'],
      [join(logs, 'lambda', 'OutriderCompute-WorkersmallD67ACB55'), '2026-01-01T00:00:01.000Z'],
    ] as const) {
      await mkdir(directory, { recursive: true });
      await writeFile(
        join(directory, 'one.log'),
        line(at, 'words-000000000000') + line(at, 'words-111111111111'),
      );
    }
    const { events } = await new CloudWatchLogsClient(client('CLOUDWATCH_LOGS')).send(
      new FilterLogEventsCommand({
        logGroupName: output('LogGroupName'),
        filterPattern: '"words-000000000000"',
        startTime: Date.parse('2026-01-01T00:00:00Z'),
      }),
    );
    expect(events?.map(({ timestamp, message }) => [timestamp, message])).toEqual([
      [1767225601000, '{"at":"2026-01-01T00:00:01.000Z","level":"info","jobId":"words-000000000000"}'],
      [1767225602000, '{"at":"2026-01-01T00:00:02.000Z","level":"info","jobId":"words-000000000000"}'],
    ]);
  });

  it('asks the fault hook about requests to each service', async () => {
    await fetch(`${stack.apiUrl}/jobs`);
    const services = new Set(requests.map(({ service }) => service));
    expect([...services].toSorted()).toEqual(
      expect.arrayContaining(['ecs', 'lambda', 'logs', 's3', 'states']),
    );
  });

  it('starts no process before there is work', () => {
    expect(stack.processes().filter(({ kind }) => kind === 'fargate')).toEqual([]);
  });

  it('refuses a port that is taken, and leaves nothing running', async () => {
    const other = await scratchDirectory();
    const port = Number(new URL(stack.apiUrl).port);
    await expect(startLocalStack({ stateDir: other.path, ports: { api: port } })).rejects.toMatchObject({
      name: 'PortTakenError',
      port,
    });
    await other.remove();
  });
});

describe('an embedded stack that comes back', () => {
  it('has what the one before it left in its directory', async () => {
    const directory = await scratchDirectory();
    const put = { method: 'put', key: 'kept.txt' };
    const open = async (): Promise<{ found: LocalStack; s3: S3Client }> => {
      const found = await startLocalStack({ stateDir: directory.path });
      const { region, credentials, environment } = found;
      const endpoint = environment['AWS_ENDPOINT_URL_S3'] ?? '';
      return { found, s3: new S3Client({ region, credentials, endpoint, forcePathStyle: true }) };
    };
    const { PutObjectCommand, GetObjectCommand } = await import('@aws-sdk/client-s3');
    const first = await open();
    const Bucket = first.found.outputs['DataBucketName'];
    await first.s3.send(new PutObjectCommand({ Bucket, Key: put.key, Body: 'still here' }));
    await first.found.stop();
    const second = await open();
    const { Body } = await second.s3.send(new GetObjectCommand({ Bucket, Key: put.key }));
    expect(await Body?.transformToString()).toBe('still here');
    await second.found.stop();
    await directory.remove();
  });
});
