import { S3Client } from '@aws-sdk/client-s3';
import { S3ObjectStore } from '../adapters/aws/s3-object-store.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { Target } from './connection.ts';
import { objectStoreOf } from './embedded-stack.ts';

/** Objects as the user may read and write them: of the local stack, or of AWS with the credentials that AWS tools would find. */
export const objectsOf = ({ stack, api }: Target): ObjectStore =>
  stack === undefined
    ? new S3ObjectStore(new S3Client({ region: api.region, followRegionRedirects: true }))
    : objectStoreOf(stack);
