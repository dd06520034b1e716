import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { denialOf } from '../../../src/adapters/aws/denials.ts';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { collect } from '../../contract/ports/builders.ts';
import { startFakeS3 } from '../../support/fake-s3.ts';

const place = { bucket: 'books', key: 'a' };

async function storeOf(
  respond: (response: ServerResponse, request: IncomingMessage) => void,
): Promise<S3ObjectStore> {
  const { client } = await startFakeS3((request, response) => {
    respond(response, request);
  });
  return new S3ObjectStore(client);
}

/** As S3 words it. */
const refusal = (more: string): string =>
  `<Error><Code>InvalidObjectState</Code><Message>The operation is not valid for the object's storage class</Message>${more}</Error>`;

describe('an archived object', () => {
  it('is no missing right', () => {
    const fault = Object.assign(new Error('x'), {
      name: 'InvalidObjectState',
      $metadata: { httpStatusCode: 403 },
    });
    expect(denialOf(fault, { action: 's3:GetObject', resource: 's3://books/a' })).toBeUndefined();
  });

  it.each([
    [
      '<StorageClass>GLACIER</StorageClass>',
      'the object s3://books/a is archived (GLACIER); restore it first',
    ],
    [
      '<StorageClass>INTELLIGENT_TIERING</StorageClass><AccessTier>ARCHIVE_ACCESS</AccessTier>',
      'the object s3://books/a is archived (INTELLIGENT_TIERING, ARCHIVE_ACCESS); restore it first',
    ],
    ['', 'the object s3://books/a is archived; restore it first'],
  ])('is a bad input to whoever reads it (%s)', async (more, message) => {
    const store = await storeOf((response) => {
      response.writeHead(403).end(refusal(more));
    });
    await expect(store.readAll(place)).rejects.toMatchObject({ name: 'InvalidInput', message });
  });

  it('is the fault of whoever copies it, and no fault that passes', async () => {
    const store = await storeOf((response) => {
      response.writeHead(403).end(refusal(''));
    });
    const to = { bucket: 'books', key: 'b' };
    await expect(store.copy({ ...place, etag: '"e"' }, to)).rejects.toBeInstanceOf(InvalidInputError);
  });

  it('is told by a listing, unless it was restored', async () => {
    const object = (key: string, more: string): string =>
      `<Contents><Key>${key}</Key><Size>1</Size><ETag>"e"</ETag>${more}</Contents>`;
    const restoring = '<RestoreStatus><IsRestoreInProgress>true</IsRestoreInProgress></RestoreStatus>';
    const restored =
      '<RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress><RestoreExpiryDate>2030-01-01T00:00:00.000Z</RestoreExpiryDate></RestoreStatus>';
    const asked: unknown[] = [];
    const store = await storeOf((response, request) => {
      asked.push(request.headers['x-amz-optional-object-attributes']);
      response
        .writeHead(200)
        .end(
          `<ListBucketResult>${[
            object('a', '<StorageClass>STANDARD</StorageClass>'),
            object('b', '<StorageClass>GLACIER</StorageClass>'),
            object('c', `<StorageClass>DEEP_ARCHIVE</StorageClass>${restoring}`),
            object('d', `<StorageClass>GLACIER</StorageClass>${restored}`),
            object('e', '<StorageClass>GLACIER_IR</StorageClass>'),
            object('f', '<StorageClass>INTELLIGENT_TIERING</StorageClass>'),
          ].join('')}</ListBucketResult>`,
        );
    });
    const found = await collect(store.list({ bucket: 'books', key: '' }));
    expect(found.map(({ key, archive }) => [key, archive])).toEqual([
      ['a', undefined],
      ['b', 'GLACIER'],
      ['c', 'DEEP_ARCHIVE'],
      ['d', undefined],
      ['e', undefined],
      ['f', undefined],
    ]);
    expect(asked).toEqual(['RestoreStatus']);
  });

  it.each<[Record<string, string>, string | undefined]>([
    [{}, undefined],
    [{ 'x-amz-storage-class': 'GLACIER' }, 'GLACIER'],
    [{ 'x-amz-storage-class': 'DEEP_ARCHIVE', 'x-amz-restore': 'ongoing-request="true"' }, 'DEEP_ARCHIVE'],
    [
      {
        'x-amz-storage-class': 'GLACIER',
        'x-amz-restore': 'ongoing-request="false", expiry-date="Fri, 21 Dec 2030 00:00:00 GMT"',
      },
      undefined,
    ],
    [{ 'x-amz-storage-class': 'INTELLIGENT_TIERING' }, undefined],
    [
      { 'x-amz-storage-class': 'INTELLIGENT_TIERING', 'x-amz-archive-status': 'DEEP_ARCHIVE_ACCESS' },
      'INTELLIGENT_TIERING, DEEP_ARCHIVE_ACCESS',
    ],
  ])('is told by its head (%j)', async (headers, archive) => {
    const store = await storeOf((response) => {
      response.writeHead(200, { etag: '"e"', 'content-length': 1, ...headers }).end();
    });
    expect((await store.head(place))?.archive).toBe(archive);
  });
});
