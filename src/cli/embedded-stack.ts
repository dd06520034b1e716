import { S3Client } from '@aws-sdk/client-s3';
import { keepExpressSessions } from '../adapters/aws/express-sessions.ts';
import { S3ObjectStore } from '../adapters/aws/s3-object-store.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { StackConnection } from './start-stack.ts';

// The rest is apart, for who needs no S3 client, which takes its time to load.
export * from './start-stack.ts';

/** The objects of a stack, over its S3. */
export function objectStoreOf(connection: StackConnection): ObjectStore {
  const endpoint = connection.environment.AWS_ENDPOINT_URL_S3 ?? connection.environment.AWS_ENDPOINT_URL;
  const client = (): S3Client =>
    new S3Client({
      region: connection.region,
      credentials: connection.credentials,
      // Buckets of the embedded stack have no host names of their own.
      ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    });
  const zonal = keepExpressSessions(client());
  return new S3ObjectStore(client(), { zonal: { client: zonal, reads: zonal } });
}
