import { describe, expect, it } from 'vitest';
import { translate } from '../../../src/adapters/aws/s3-faults.ts';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { stepRetries } from '../../../cdk/constructs/step-retries.ts';
import { failureOf } from '../../../src/worker/failure-of.ts';
import { startFakeS3 } from '../../support/fake-s3.ts';

const ref = { bucket: 'books', key: 'a' };
const fault = (name: string, status: number, message = 'why'): Error =>
  Object.assign(new Error(message), { name, $metadata: { httpStatusCode: status } });

describe('what S3 refuses for what is asked', () => {
  const words =
    'Content-MD5 OR x-amz-checksum- HTTP header is required for Put Part requests with Object Lock';

  it('is told in its words, as a fault of storage that no step is tried again for', () => {
    const error = translate('upload part', ref, fault('InvalidRequest', 400, words));
    expect(error).toMatchObject({
      name: 'StoreRefused',
      message: `upload part was refused by S3 for s3://books/a: InvalidRequest: ${words}`,
    });
    expect(failureOf(error, 'runtime')).toEqual({ cause: 'storage', message: error.message });
    expect(stepRetries.flatMap(({ errors }) => errors)).not.toContain(error.name);
    // Whoever bears a store that is away bears this.
    expect(error).toBeInstanceOf(StoreUnavailableError);
  });

  it('is cut, where its words are many', () => {
    const { message } = translate('write', ref, fault('InvalidArgument', 400, 'ab'.repeat(1_000)));
    expect(message).toBe(`write was refused by S3 for s3://books/a: InvalidArgument: ${'ab'.repeat(141)}a`);
  });

  it('is so for a read as well', async () => {
    const { client } = await startFakeS3((_, response) => {
      response.writeHead(400, { 'content-type': 'application/xml' });
      response.end(
        '<Error><Code>InvalidRequest</Code><Message>encrypted by a key of its own</Message></Error>',
      );
    });
    await expect(new S3ObjectStore(client).readAll(ref)).rejects.toMatchObject({
      name: 'StoreRefused',
      message: 'reading was refused by S3 for s3://books/a: InvalidRequest: encrypted by a key of its own',
    });
  });
});

describe('what may be served the next time', () => {
  it.each([
    ['InternalError', 500],
    ['NotImplemented', 501],
    ['SlowDown', 503],
    ['TooManyRequests', 429],
    ['RequestTimeout', 400],
    ['ExpiredToken', 400],
    ['BadDigest', 400],
    ['IncompleteBody', 400],
    ['OperationAborted', 409],
    // Of an answer without words.
    ['400', 400],
  ])('%s (%i) is a fault that passes', (name, status) => {
    expect(translate('write', ref, fault(name, status))).toMatchObject({
      name: 'StoreUnavailable',
      message: 'write in S3 failed',
    });
  });

  it('is told in the words of a local stack whose disk is full', () => {
    const words =
      'the disk is full where the stack keeps its data: make room there, and try again (ENOSPC: write)';
    expect(translate('write', ref, fault('StorageFull', 500, words))).toMatchObject({
      name: 'StoreUnavailable',
      message: `write in S3 failed: ${words}`,
      details: { uri: 's3://books/a', fault: 'StorageFull', status: 500 },
    });
    const { message } = translate('write', ref, fault('StorageFull', 500, 'ab'.repeat(1_000)));
    expect(message).toBe(`write in S3 failed: ${'ab'.repeat(150)}`);
  });
});
