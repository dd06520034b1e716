import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { ECSClient, RunTaskCommand } from '@aws-sdk/client-ecs';
import { expect, it } from 'vitest';
import { type LocalStack, startLocalStack } from '../../src/local/stack.ts';
import { scratchDirectory } from './local-stack-support.ts';

const SYNTHESIS_LIMIT_MS = 180_000;

/** Says that it waits by a first item, and writes a second one down when it is told to end. */
const program = `
  const { createRequire } = require('node:module');
  const load = createRequire(${JSON.stringify(import.meta.url)});
  const { DynamoDBClient, PutItemCommand } = load('@aws-sdk/client-dynamodb');
  const credentials = JSON.parse(process.env.OWNER);
  const table = new DynamoDBClient({ credentials });
  const note = (pk) => table.send(
    new PutItemCommand({ TableName: process.env.OUTRIDER_TABLE, Item: { pk: { S: pk }, sk: { S: 'x' } } }));
  setInterval(() => {}, 60_000);
  process.on('SIGTERM', () => note('ended').finally(() => process.exit(0)));
  void note('waits');
`;

const client = (
  stack: LocalStack,
  service: string,
): { region: string; endpoint: string; credentials: LocalStack['credentials'] } => ({
  region: stack.region,
  endpoint: stack.environment[`AWS_ENDPOINT_URL_${service}`] ?? '',
  credentials: stack.credentials,
});

async function isNoted(stack: LocalStack, pk: string): Promise<boolean> {
  const dynamodb = new DynamoDBClient(client(stack, 'DYNAMODB'));
  const Key = { pk: { S: pk }, sk: { S: 'x' } };
  const answer = await dynamodb.send(
    new GetItemCommand({ TableName: stack.outputs['TableName'], Key, ConsistentRead: true }),
  );
  dynamodb.destroy();
  return answer.Item !== undefined;
}

it(
  'a stack that ends takes down what its workers write as they are told to end',
  async () => {
    const directory = await scratchDirectory();
    const path = join(directory.path, 'noting.cjs');
    await writeFile(path, program);
    const first = await startLocalStack({ stateDir: directory.path });
    const environment = [{ name: 'OWNER', value: JSON.stringify(first.credentials) }];
    await new ECSClient(client(first, 'ECS')).send(
      new RunTaskCommand({
        cluster: 'OutriderCompute-Cluster',
        taskDefinition: 'outrider-worker',
        launchType: 'FARGATE',
        networkConfiguration: { awsvpcConfiguration: { subnets: ['subnet-a'] } },
        overrides: { containerOverrides: [{ name: 'worker', command: ['node', path], environment }] },
      }),
    );
    await expect.poll(() => isNoted(first, 'waits'), { timeout: 30_000 }).toBe(true);
    await first.stop();
    const second = await startLocalStack({ stateDir: directory.path });
    expect(await isNoted(second, 'ended')).toBe(true);
    await second.stop();
    await directory.remove();
  },
  SYNTHESIS_LIMIT_MS,
);
