import { GetObjectCommand, HeadObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { describe, expect, it, onTestFinished } from 'vitest';
import { countDynamo, countLambda, countS3 } from '../../../src/adapters/aws/count-requests.ts';
import { AsyncRequestMeter } from '../../../src/adapters/node/async-request-meter.ts';
import type { RequestTally } from '../../../src/contracts/requests.ts';
import { listen } from '../../../src/local/http/listen.ts';
import { readBody } from '../../../src/local/http/read-body.ts';

interface Answer {
  readonly status: number;
  readonly body?: unknown;
}

/** A service that gives the answers in order, and what it was asked. */
async function serve(answers: readonly Answer[]): Promise<{ settings: object; asked: string[] }> {
  const asked: string[] = [];
  const server = await listen(async (request, response) => {
    const body = Buffer.from(await readBody(request, 1_000_000)).toString();
    const answer = answers[Math.min(asked.length, answers.length - 1)];
    asked.push(body);
    response.writeHead(answer?.status ?? 500, { 'content-type': 'application/json' });
    response.end(answer?.body === undefined ? '' : JSON.stringify(answer.body));
  });
  onTestFinished(() => server.close());
  const settings = {
    endpoint: server.endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    maxAttempts: 3,
    retryStrategy: undefined,
  };
  return { settings, asked };
}

const noted = (): { tallies: RequestTally[]; count: (tally: RequestTally) => void } => {
  const tallies: RequestTally[] = [];
  return { tallies, count: (tally) => void tallies.push(tally) };
};

describe('requests', () => {
  it('to S3 are counted by each try, also those that the SDK repeats, by their class', async () => {
    const { settings, asked } = await serve([{ status: 503 }, { status: 500 }, { status: 200 }]);
    const { tallies, count } = noted();
    const client = countS3(new S3Client({ ...settings, forcePathStyle: true }), count);
    await client.send(new HeadObjectCommand({ Bucket: 'books', Key: 'a' }));
    await client.send(new GetObjectCommand({ Bucket: 'books', Key: 'a' }));
    expect(asked).toHaveLength(4);
    expect(tallies).toEqual([{ get: 1 }, { get: 1 }, { get: 1 }, { get: 1 }]);
  });

  it('to DynamoDB ask for what they consume, which a throttled try does not', async () => {
    const throttled = { __type: 'ProvisionedThroughputExceededException', message: 'slow' };
    const { settings, asked } = await serve([
      { status: 400, body: throttled },
      { status: 200, body: { ConsumedCapacity: { TableName: 't', CapacityUnits: 3 } } },
    ]);
    const { tallies, count } = noted();
    const client = DynamoDBDocumentClient.from(countDynamo(new DynamoDBClient(settings), count));
    await client.send(new PutCommand({ TableName: 't', Item: { pk: 'a' } }));
    expect(
      asked.map((body) => (JSON.parse(body) as { ReturnConsumedCapacity?: string }).ReturnConsumedCapacity),
    ).toEqual(['TOTAL', 'TOTAL']);
    expect(tallies).toEqual([{ calls: 1 }, { calls: 1, writeUnits: 3 }]);
  });

  it('to DynamoDB whose condition is refused cost a unit, and of one that tells nothing the sizes count', async () => {
    const { settings } = await serve([
      { status: 400, body: { __type: 'ConditionalCheckFailedException', message: 'no' } },
      { status: 200, body: { Attributes: { pk: { S: 'a' }, text: { S: 'x'.repeat(2_500) } } } },
    ]);
    const { tallies, count } = noted();
    const client = DynamoDBDocumentClient.from(countDynamo(new DynamoDBClient(settings), count));
    const update = () =>
      client.send(
        new UpdateCommand({
          TableName: 't',
          Key: { pk: 'a' },
          UpdateExpression: 'SET a = :a',
          ReturnValues: 'ALL_NEW',
        }),
      );
    await expect(update()).rejects.toThrow('no');
    await update();
    expect(tallies).toEqual([
      { calls: 1, writeUnits: 1 },
      { calls: 1, writeUnits: 3 },
    ]);
  });

  it('to Lambda count where it has taken them', async () => {
    const { settings } = await serve([{ status: 429, body: { message: 'Rate Exceeded.' } }, { status: 202 }]);
    const { tallies, count } = noted();
    const client = countLambda(new LambdaClient(settings), count);
    await client.send(new InvokeCommand({ FunctionName: 'f', InvocationType: 'Event' }));
    expect(tallies).toEqual([{ lambda: 1 }]);
  });
});

describe('a meter', () => {
  it('knows for whom it counts, also of two at once, and gives nothing twice', async () => {
    const meter = new AsyncRequestMeter({ elapsedMs: () => 0 });
    const work = (owner: string, requests: number) =>
      meter.counting(owner, async () => {
        for (let request = 0; request < requests; request++) {
          await new Promise((resolve) => setImmediate(resolve));
          meter.count({ get: 1, writeUnits: 0.5 });
        }
      });
    await Promise.all([work('a', 3), work('b', 5)]);
    meter.count({ get: 100 });
    expect(meter.take('a')).toEqual({ get: 3, writeUnits: 1.5 });
    expect(meter.take('a')).toEqual({});
    expect(meter.take('b')).toEqual({ get: 5, writeUnits: 2.5 });
  });

  it('gives jobs the time that they hold the function, and parts it among those at once', async () => {
    let now = 200; // The process began before it was asked for anything, which is billed as well.
    const meter = new AsyncRequestMeter({ memoryMb: 100, elapsedMs: () => now });
    await meter.counting('a', async () => {
      now += 800;
      await meter.counting('b', () => {
        now += 1_000;
        return Promise.resolve();
      });
      now += 10;
    });
    now += 5_000; // Nobody's.
    expect(meter.take('a')).toEqual({ coordinatorMbMs: 100 * (200 + 800 + 500 + 10) });
    expect(meter.take('b')).toEqual({ coordinatorMbMs: 100 * 500 });
  });
});
