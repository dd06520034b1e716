import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { InvokeCommand } from '@aws-sdk/client-lambda';
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { SendTaskHeartbeatCommand } from '@aws-sdk/client-sfn';
import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type AwsSettings,
  dynamoClient,
  lambdaClient,
  s3ZonalClients,
  sfnClient,
} from '../../../src/adapters/aws/clients.ts';

const closings: (() => void)[] = [];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
  for (const close of closings.splice(0)) close();
});

interface Service {
  readonly settings: AwsSettings;
  /** How many requests have come. */
  readonly asked: () => number;
  /** Resolves with the first. */
  readonly first: Promise<unknown>;
}

/** A service at that name of this machine that never answers the first request. */
async function deafAtFirst(host: string): Promise<Service> {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    if (asked === 1) return;
    response.setHeader('content-type', 'application/x-amz-json-1.0');
    request.resume().once('end', () => response.end('{}'));
  });
  const first = once(server, 'request');
  return { settings: await settingsOf(server, host), asked: () => asked, first };
}

/** A service that answers nothing before it is told to. */
async function slowService(host: string) {
  let asked = 0;
  const held: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      asked += 1;
      held.push(response.setHeader('content-type', 'application/x-amz-json-1.0'));
    });
  });
  return {
    settings: await settingsOf(server, host),
    /** Waits until so many requests have come in all; no more may come. */
    arrived: async (total: number): Promise<void> => {
      for (let turns = 0; turns < 100_000 && asked < total; turns++) await turn();
      for (let turns = 0; turns < 50; turns++) await turn();
      expect(asked).toBe(total);
    },
    answerAll: (): void => {
      for (const response of held.splice(0)) response.end('{}');
    },
  };
}

/** Has the server listen at that name, and gives what a client of it needs. */
async function settingsOf(server: Server, host: string): Promise<AwsSettings> {
  server.listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const endpoint = `http://${host}:${String(address.port)}`;
  process.env['AWS_ENDPOINT_URL'] = endpoint; // The SDK itself reads the address there.
  closings.push(() => {
    delete process.env['AWS_ENDPOINT_URL'];
    server.closeAllConnections();
    server.close();
  });
  const keys = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'secret', sessionToken: '' };
  const credentials = () => Promise.resolve({ ...keys, expiration: new Date(Date.now() + 3_600_000) });
  return { region: 'us-east-1', env: { AWS_ENDPOINT_URL: endpoint }, credentials };
}

const read = (settings: AwsSettings): Promise<unknown> =>
  dynamoClient(settings).send(new GetCommand({ TableName: 'records', Key: { pk: 'a', sk: 'b' } }));
const beat = (settings: AwsSettings): Promise<unknown> =>
  sfnClient(settings).send(new SendTaskHeartbeatCommand({ taskToken: 'token' }));

/** Lets time pass until the service is asked once more, and for three seconds at most: the SDK waits before it tries again. */
async function untilAskedAgain({ asked }: Service): Promise<void> {
  for (let passed = 0; passed < 3_000 && asked() < 2; passed += 100) await vi.advanceTimersByTimeAsync(100);
}

/** A call that gets no answer at first is made again after 5 s, or as long as the host is waited for, and no sooner. */
async function expectAskedAgain(
  call: (settings: Awaited<ReturnType<typeof deafAtFirst>>['settings']) => Promise<unknown>,
  { host, waitsMs }: { readonly host: string; readonly waitsMs: number } = {
    host: 'localhost',
    waitsMs: 4_900,
  },
): Promise<void> {
  const service = await deafAtFirst(host);
  const answer = call(service.settings);
  await service.first;
  await vi.advanceTimersByTimeAsync(waitsMs);
  expect(service.asked()).toBe(1);
  await untilAskedAgain(service);
  await expect(answer).resolves.toBeDefined();
  expect(service.asked()).toBe(2);
}

describe('a call whose connection has died without a word', () => {
  it.each([
    ['DynamoDB', read],
    ['Step Functions', beat],
  ])('is made again after 5 s to %s', async (_, call) => {
    await expectAskedAgain(call);
  });

  it('is waited for on one machine, where a service that is late is busy', async () => {
    await expectAskedAgain(read, { host: '127.0.0.1', waitsMs: 59_000 });
  });
});

/** As often as wanted by one client. */
const readsOf = (settings: AwsSettings): (() => Promise<unknown>) => {
  const client = dynamoClient(settings);
  return () => client.send(new GetCommand({ TableName: 'records', Key: { pk: 'a', sk: 'b' } }));
};
const launchesOf = (settings: AwsSettings): (() => Promise<unknown>) => {
  const client = lambdaClient(settings);
  return () => client.send(new InvokeCommand({ FunctionName: 'worker', InvocationType: 'Event' }));
};

describe('more calls at once than there are connections', () => {
  it.each([
    ['DynamoDB', readsOf],
    ['Lambda', launchesOf],
  ])('wait for one without that being taken for the silence of %s', async (_, callsOf) => {
    const { settings, arrived, answerAll } = await slowService('localhost');
    const call = callsOf(settings);
    const answers = Promise.allSettled(Array.from({ length: 220 }, call));
    // Five rounds of three seconds each, where a connection that is silent for five is given up, at the latest the second time.
    for (const total of [50, 100, 150, 200, 220]) {
      await arrived(total);
      await vi.advanceTimersByTimeAsync(3_000);
      answerAll();
    }
    expect((await answers).map(({ status }) => status)).toEqual(
      Array.from({ length: 220 }, () => 'fulfilled'),
    );
    await arrived(220);
  });
});

/** A bucket of all: to a directory bucket of a service by an address of its own the SDK makes no sessions. */
const object = { Bucket: 'books', Key: 'a' };

describe('a request to a zone that has fallen silent', () => {
  beforeEach(() => {
    // Sockets tell the time by clocks of their own, which no test sets.
    vi.spyOn(Socket.prototype, 'setTimeout').mockImplementation(function (this: Socket, ms, onTimeout) {
      if (onTimeout !== undefined && ms > 0) setTimeout(onTimeout, ms);
      return this;
    });
  });

  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('is made again after 5 s where it writes', async () => {
    await expectAskedAgain((settings) =>
      s3ZonalClients(settings).client.send(new PutObjectCommand({ ...object, Body: 'a' })),
    );
  });

  it('ends after 3 s where it reads, for the store to make it again', async () => {
    const service = await deafAtFirst('localhost');
    const { reads, silenceMs } = s3ZonalClients(service.settings);
    const answer = reads.send(new GetObjectCommand(object)).catch((cause: unknown) => cause);
    await service.first;
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await answer).toMatchObject({ name: 'TimeoutError' });
    expect([service.asked(), silenceMs]).toEqual([1, 3_000]);
  });

  it('is waited for on one machine, where a service that is late is busy', async () => {
    const service = await deafAtFirst('127.0.0.1');
    const { client, silenceMs } = s3ZonalClients(service.settings);
    const answer = client.send(new PutObjectCommand({ ...object, Body: 'a' }));
    await service.first;
    await vi.advanceTimersByTimeAsync(59_000);
    expect([service.asked(), silenceMs]).toEqual([1, undefined]);
    await untilAskedAgain(service);
    await expect(answer).resolves.toBeDefined();
  });
});
