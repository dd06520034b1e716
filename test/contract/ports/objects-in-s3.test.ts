import { afterAll, beforeAll, describe } from 'vitest';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { describeObjectStore } from './object-store-suite.ts';
import { startObjects } from './servers.ts';

describe('over the local S3', () => {
  let server: Awaited<ReturnType<typeof startObjects>>;
  beforeAll(async () => {
    // As the client of workers.
    server = await startObjects(undefined, { requestChecksumCalculation: 'WHEN_REQUIRED' });
  });
  afterAll(async () => {
    await server.close();
  });

  describeObjectStore('S3', () => new S3ObjectStore(server.client));
  describeObjectStore(
    'S3, late parts sent twice',
    () => new S3ObjectStore(server.client, { onHedgedPart: () => undefined }),
  );
});
