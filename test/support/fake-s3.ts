import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { onTestFinished } from 'vitest';
import type { HandClock } from './hand-clock.ts';

/** An S3 that answers as a test says, until that test has ended, and a client of it that makes each request once. */
export async function startFakeS3(
  listener: RequestListener,
  config: S3ClientConfig = {},
): Promise<{ readonly server: Server; readonly client: S3Client }> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const client = new S3Client({
    region: 'us-east-1',
    endpoint: `http://127.0.0.1:${address.port}`,
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    ...config,
  });
  onTestFinished(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  return { server, client };
}

/** Lets a second pass whenever more requests than before have come to the server, until what is under way has ended. */
export async function passSeconds<T>(
  clock: HandClock,
  underWay: Promise<T>,
  arrived: () => number,
): Promise<T> {
  const state = { isOver: false };
  const isOver = (): boolean => state.isOver;
  const watched = underWay.finally(() => (state.isOver = true));
  watched.catch(() => undefined);
  for (let before = 0; !isOver();) {
    await turn();
    if (arrived() === before) continue;
    before = arrived();
    for (let turns = 0; turns < 50; turns++) await turn();
    clock.pass(1_000);
  }
  return watched;
}
