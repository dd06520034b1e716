import {
  ConditionalCheckFailedException,
  DynamoDBClient,
  DynamoDBServiceException,
} from '@aws-sdk/client-dynamodb';
import {
  BatchGetCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, it } from 'vitest';
import { DynamoAssignmentStatistics } from '../../../src/adapters/aws/dynamo-assignment-statistics.ts';
import { DynamoAttemptStore } from '../../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoCapacityStore } from '../../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { DynamoDecisionLog } from '../../../src/adapters/aws/dynamo-decision-log.ts';
import { DynamoJobStore } from '../../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoLeaseStore } from '../../../src/adapters/aws/dynamo-lease-store.ts';
import { DynamoTable } from '../../../src/adapters/aws/dynamo-table.ts';
import {
  BrokenInvariantError,
  InvalidInputError,
  StoreUnavailableError,
} from '../../../src/contracts/errors.ts';
import { declinedOn } from '../../../src/contracts/records.ts';
import {
  at,
  attempt,
  freshJobId,
  jobRecord,
  progress,
  resultOf,
  seconds,
  T0,
} from '../../contract/ports/builders.ts';

const mock = mockClient(DynamoDBDocumentClient);
const table = new DynamoTable(
  DynamoDBDocumentClient.from(new DynamoDBClient({ region: 'us-east-1' })),
  'records',
);
const refused = new ConditionalCheckFailedException({ message: 'no', $metadata: { httpStatusCode: 400 } });
const fault = (name: string, message: string, httpStatusCode: number): DynamoDBServiceException =>
  new DynamoDBServiceException({ name, message, $fault: 'client', $metadata: { httpStatusCode } });

/** 2025-10-09T08:53:20Z and 30 days, in seconds. */
const EXPIRY = 1_762_592_000;

beforeEach(() => {
  mock.reset();
});

const sent = (): Record<string, unknown> => ({ ...mock.calls()[0]?.args[0].input });

describe('what the stores send to DynamoDB', () => {
  it('creates a job only where there is none, listed and with an expiry', async () => {
    mock.on(PutCommand).resolves({});
    const jobId = freshJobId();
    await new DynamoJobStore(table).create(jobRecord(jobId));
    expect(sent()).toMatchObject({
      TableName: 'records',
      ConditionExpression: 'attribute_not_exists(#pk)',
      ExpressionAttributeNames: { '#pk': 'pk' },
      Item: {
        pk: `JOB#${jobId}`,
        sk: 'META',
        listing: 'JOBS',
        createdAt: T0,
        state: 'submitted',
        expiresAt: EXPIRY,
      },
    });
  });

  it('updates a job on condition of its state, with every name behind a placeholder', async () => {
    mock.on(UpdateCommand).resolves({});
    await new DynamoJobStore(table).update(freshJobId(), ['submitted', 'running'], {
      state: 'running',
      shards: 4,
    });
    expect(sent()).toMatchObject({
      UpdateExpression: 'SET #state = :set_state, #shards = :set_shards, #writeId = :set_writeId',
      ConditionExpression: 'attribute_exists(#pk) AND #state IN (:in0, :in1)',
      ExpressionAttributeNames: {
        '#pk': 'pk',
        '#state': 'state',
        '#shards': 'shards',
        '#writeId': 'writeId',
      },
      ExpressionAttributeValues: {
        ':in0': 'submitted',
        ':in1': 'running',
        ':set_state': 'running',
        ':set_shards': 4,
      },
    });
  });

  it('lists by the index, newest first, and reads the jobs by key', async () => {
    const jobId = freshJobId();
    mock.on(QueryCommand).resolves({ Items: [{ pk: `JOB#${jobId}`, sk: 'META' }] });
    mock.on(BatchGetCommand).resolves({ Responses: { records: [] } });
    await new DynamoJobStore(table).list({ limit: 7 });
    expect(sent()).toMatchObject({
      IndexName: 'by-creation',
      KeyConditionExpression: '#listing = :listing',
      Limit: 7,
      ScanIndexForward: false,
    });
    expect(mock.commandCalls(BatchGetCommand)[0]?.args[0].input.RequestItems).toEqual({
      records: { Keys: [{ pk: `JOB#${jobId}`, sk: 'META' }], ConsistentRead: true },
    });
  });

  it('takes a lease that is free, over or its own, and raises the epoch in the same write', async () => {
    mock.on(UpdateCommand).resolves({ Attributes: { owner: 'a', epoch: 7, until: at(10) } });
    expect(await new DynamoLeaseStore(table).acquire(freshJobId(), 'a', at(0), seconds(10))).toEqual({
      kind: 'acquired',
      epoch: 7,
    });
    expect(sent()).toMatchObject({
      ConditionExpression:
        'attribute_not_exists(#pk) OR #until <= :now OR #owner = :set_owner OR #owner = :replaced',
      UpdateExpression:
        'SET #owner = :set_owner, #until = :set_until, #expiresAt = :set_expiresAt ADD #epoch :one',
      ExpressionAttributeValues: { ':now': at(0), ':set_until': at(10), ':set_owner': 'a', ':one': 1 },
    });
  });

  it('appends a decision log entry under its padded version', async () => {
    mock.on(PutCommand).resolves({});
    const jobId = freshJobId();
    await new DynamoDecisionLog(table).append(jobId, { version: 42, epoch: 2, at: T0, decisions: [] });
    expect(sent()).toMatchObject({
      ConditionExpression: 'attribute_not_exists(#pk)',
      Item: { pk: `LOG#${jobId}`, sk: '0000000042', epoch: 2, expiresAt: EXPIRY },
    });
  });

  it('claims only what was launched and not cancelled, in the shard of the task', async () => {
    mock.on(UpdateCommand).resolves({});
    const jobId = freshJobId();
    const space = { jobId, shards: 1 };
    await new DynamoAttemptStore(table).claim(space, attempt(3, 1), { node: 'n', zone: 'z' }, at(1));
    expect(sent()).toMatchObject({
      Key: { pk: `J#${jobId}#0`, sk: 'A#map/3/1' },
      ConditionExpression: '#state = :launched AND #order = :continue',
      ExpressionAttributeValues: {
        ':launched': 'launched',
        ':continue': 'continue',
        ':set_state': 'running',
      },
    });
  });

  it('reads all that lies under each key consistently, by no index', async () => {
    mock.on(QueryCommand).resolves({ Items: [] });
    await new DynamoAttemptStore(table).all({ jobId: freshJobId(), shards: 3 });
    expect(mock.commandCalls(QueryCommand)).toHaveLength(3);
    expect(sent()).toMatchObject({
      ConsistentRead: true,
      KeyConditionExpression: '#pk = :pk',
    });
    expect(sent()).not.toHaveProperty('IndexName', expect.any(String));
  });

  it('keeps a replica beside the result, with an expiry', async () => {
    const jobId = freshJobId();
    mock.on(PutCommand).rejectsOnce(refused).resolves({});
    mock.on(GetCommand).resolves({ Item: { attemptId: 'map/3/0' } });
    const store = new DynamoAttemptStore(table);
    const result = resultOf(attempt(3, 1), at(5));
    expect(await store.commit({ jobId, shards: 1 }, result, 'replica')).toBe('kept');
    expect(mock.commandCalls(PutCommand).map(({ args }) => args[0].input)).toMatchObject([
      { Item: { pk: `J#${jobId}#0`, sk: 'T#map/3' } },
      {
        ConditionExpression: 'attribute_not_exists(#pk)',
        Item: {
          pk: `J#${jobId}#0`,
          sk: 'R#map/3/1',
          attemptId: 'map/3/1',
          taskId: 'map/3',
          expiresAt: EXPIRY + 5,
        },
      },
    ]);
  });

  it('appends what jobs have seen of copies to the lists of an hour that are not full', async () => {
    mock.on(UpdateCommand).resolves({});
    const tally = { reads: [], gapsMs: [7, 8], computeMs: [9] };
    await new DynamoAssignmentStatistics(table).add(11, tally, T0);
    expect(mock.commandCalls(UpdateCommand).map(({ args }) => args[0].input)).toMatchObject([
      {
        // T0 is 488,888 hours and some since the epoch.
        Key: { pk: 'STATISTICS', sk: 'ASSIGNMENTS#11#488888' },
        ConditionExpression: 'attribute_not_exists(#gapsMs) OR size(#gapsMs) < :limit',
        UpdateExpression:
          'SET #expiresAt = :set_expiresAt , #gapsMs = list_append(if_not_exists(#gapsMs, :none), :values)',
        ExpressionAttributeValues: {
          ':set_expiresAt': EXPIRY,
          ':none': [],
          ':values': [7, 8],
          ':limit': 256,
        },
      },
      {
        ExpressionAttributeNames: { '#computeMs': 'computeMs' },
        ExpressionAttributeValues: { ':values': [9] },
      },
    ]);
  });
});

describe('a write whose answer was lost and which the SDK repeats', () => {
  /** The store refuses, since its item is what the first delivery wrote. */
  function deliverTwice(): void {
    let stored: Record<string, unknown> = {};
    mock.on(PutCommand).callsFake((input: { Item: Record<string, unknown> }) => {
      stored = input.Item;
      throw refused;
    });
    mock.on(UpdateCommand).callsFake((input: { ExpressionAttributeValues: Record<string, unknown> }) => {
      const values = Object.entries(input.ExpressionAttributeValues);
      stored = Object.fromEntries(values.map(([name, value]) => [name.replace(/^:(set_)?/, ''), value]));
      throw refused;
    });
    mock.on(GetCommand).callsFake(() => ({ Item: stored }));
  }

  it('creates a job', async () => {
    deliverTwice();
    expect(await new DynamoJobStore(table).create(jobRecord(freshJobId()))).toEqual({ kind: 'created' });
  });

  it('updates a job', async () => {
    deliverTwice();
    expect(await new DynamoJobStore(table).update(freshJobId(), ['submitted'], { state: 'running' })).toBe(
      'updated',
    );
  });

  it('claims an attempt', async () => {
    deliverTwice();
    const space = { jobId: freshJobId(), shards: 1 };
    expect(
      await new DynamoAttemptStore(table).claim(space, attempt(0), { node: 'n', zone: 'z' }, at(0)),
    ).toBe('claimed');
  });

  it('records a death, and another one is no less refused', async () => {
    deliverTwice();
    const space = { jobId: freshJobId(), shards: 1 };
    const store = new DynamoAttemptStore(table);
    const death = { invocation: 'request-1', failure: declinedOn('slow') };
    expect(await store.recordDeath(space, attempt(0), death, at(0))).toBe('recorded');
    mock.on(UpdateCommand).rejects(refused);
    expect(await store.recordDeath(space, attempt(0), death, at(1))).toBe('refused');
  });

  it('commits a result', async () => {
    deliverTwice();
    const space = { jobId: freshJobId(), shards: 1 };
    expect(await new DynamoAttemptStore(table).commit(space, resultOf(attempt(0), at(0)))).toBe('won');
  });

  it('appends a decision', async () => {
    deliverTwice();
    expect(
      await new DynamoDecisionLog(table).append(freshJobId(), {
        version: 1,
        epoch: 1,
        at: T0,
        decisions: [1],
      }),
    ).toBe('appended');
  });
});

describe('orders that are read where copies of a record may be behind', () => {
  const space = { jobId: freshJobId(), shards: 1 };
  const orders = () => new DynamoAttemptStore(table).orders(space, attempt(0));
  const reads = () => mock.commandCalls(GetCommand).map(({ args }) => args[0].input.ConsistentRead);

  it.each([
    ['a record of before the claim', { state: 'launched', order: 'continue' }],
    ['no record yet', undefined],
  ])('take %s for no order to stop', async (_, Item) => {
    mock.on(GetCommand, { ConsistentRead: false }).resolves(Item === undefined ? {} : { Item });
    mock.on(GetCommand, { ConsistentRead: true }).resolves({ Item: { state: 'running', order: 'continue' } });
    expect(await orders()).toBe('continue');
  });

  it.each([
    ['running', 'continue', 'continue'],
    ['running', 'cancel', 'cancel'],
    ['lost', 'cancel', 'cancel'],
  ])('cost one cheap read of an attempt that is %s and told to %s', async (state, order, answer) => {
    mock.on(GetCommand).resolves({ Item: { state, order } });
    expect(await orders()).toBe(answer);
    expect(reads()).toEqual([false]);
  });
});

describe('errors of DynamoDB', () => {
  const store = new DynamoAttemptStore(table);
  const space = { jobId: freshJobId(), shards: 1 };

  it.each([
    [fault('ProvisionedThroughputExceededException', 'slow down', 400), StoreUnavailableError],
    [fault('InternalServerError', 'oops', 500), StoreUnavailableError],
    [new Error('connect ECONNREFUSED'), StoreUnavailableError],
    [fault('ResourceNotFoundException', 'no table', 400), StoreUnavailableError],
    [fault('ValidationException', 'Item size has exceeded the maximum allowed size', 400), InvalidInputError],
    [fault('ValidationException', 'bad expression', 400), BrokenInvariantError],
  ])('translates %s once and keeps it as the cause', async (cause, kind) => {
    mock.on(UpdateCommand).rejects(cause);
    const report = store.report(space, attempt(0), progress(1), at(0));
    await expect(report).rejects.toBeInstanceOf(kind);
    await expect(report).rejects.toHaveProperty('cause', cause);
  });

  it('refuses a job too large for its record before anything is sent', async () => {
    const noise = Array.from({ length: 40_000 }, (_, index) => ({
      key:
        Math.imul(index + 1, 0x9e3779b1).toString(36) +
        Math.imul(index + 7, 0x85ebca6b).toString(36) +
        Math.sin(index).toString(),
      sizeBytes: Math.imul(index, 0x27d4eb2f),
    }));
    await expect(
      new DynamoJobStore(table).create(jobRecord(freshJobId(), { parts: noise })),
    ).rejects.toBeInstanceOf(InvalidInputError);
    expect(mock.calls()).toHaveLength(0);
  });

  it('asks again for what a batch read left out', async () => {
    const keys = [
      { pk: 'JOB#a', sk: 'META' },
      { pk: 'JOB#b', sk: 'META' },
    ];
    mock
      .on(BatchGetCommand)
      .resolvesOnce({
        Responses: { records: [{ pk: 'JOB#a' }] },
        UnprocessedKeys: { records: { Keys: keys.slice(1) } },
      })
      .resolvesOnce({ Responses: { records: [{ pk: 'JOB#b' }] } });
    expect(await table.batchGet(keys)).toEqual([{ pk: 'JOB#a' }, { pk: 'JOB#b' }]);
  });

  it('gives up on a ledger that refuses every write', async () => {
    mock.on(GetCommand).resolves({});
    mock.on(QueryCommand).resolves({});
    mock.on(PutCommand).resolves({});
    mock.on(UpdateCommand).rejects(refused);
    const context = { totalSlots: 10, now: at(0), length: seconds(60) };
    const ledger = new RuledCapacityLedger(new DynamoCapacityStore(table, () => Promise.resolve()));
    await expect(ledger.resize(freshJobId(), 1, context)).rejects.toBeInstanceOf(StoreUnavailableError);
  });
});
