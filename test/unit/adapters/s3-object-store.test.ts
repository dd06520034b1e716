import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, it } from 'vitest';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import {
  AccessDeniedError,
  InvalidInputError,
  NotFoundError,
  StoreUnavailableError,
} from '../../../src/contracts/errors.ts';
import { collect } from '../../contract/ports/builders.ts';

const mock = mockClient(S3Client);
const store = new S3ObjectStore(new S3Client({ region: 'us-east-1' }));
const place = { bucket: 'books', key: 'a/b' };
const upload = { ...place, uploadId: 'u1' };
const fault = (name: string, httpStatusCode: number): S3ServiceException =>
  new S3ServiceException({ name, message: name, $fault: 'client', $metadata: { httpStatusCode } });

beforeEach(() => {
  mock.reset();
});

describe('conditional writes to S3', () => {
  it('asks for absence only where the caller does', async () => {
    mock.on(PutObjectCommand).resolves({});
    const body = new Uint8Array([1]);
    expect(await store.write(place, body, { metadata: { by: 'me' } })).toBe('written');
    expect(await store.write(place, body, { ifAbsent: true })).toBe('written');
    const [plain, conditional] = mock.commandCalls(PutObjectCommand).map(({ args }) => args[0].input);
    expect(plain).toMatchObject({ Bucket: 'books', Key: 'a/b', Metadata: { by: 'me' } });
    expect(plain?.IfNoneMatch).toBeUndefined();
    expect(conditional?.IfNoneMatch).toBe('*');
  });

  it('knows its own first delivery when the answer was lost', async () => {
    let metadata: Record<string, string> = {};
    mock.on(PutObjectCommand).callsFake((input: { Metadata: Record<string, string> }) => {
      metadata = input.Metadata;
      throw fault('PreconditionFailed', 412);
    });
    mock.on(HeadObjectCommand).callsFake(() => ({ Metadata: metadata }));
    expect(await store.write(place, new Uint8Array(), { ifAbsent: true })).toBe('written');
    mock.on(HeadObjectCommand).resolves({ Metadata: { 'outrider-write': 'of another' } });
    expect(await store.write(place, new Uint8Array(), { ifAbsent: true })).toBe('exists');
  });

  it('tries again on a conflict, and gives up after some', async () => {
    mock
      .on(CompleteMultipartUploadCommand)
      .rejectsOnce(fault('ConditionalRequestConflict', 409))
      .resolves({});
    expect(await store.completeUpload(upload, [{ number: 1, etag: 'e' }], { ifAbsent: true })).toBe(
      'completed',
    );
    mock.on(CompleteMultipartUploadCommand).rejects(fault('ConditionalRequestConflict', 409));
    await expect(store.completeUpload(upload, [], { ifAbsent: true })).rejects.toBeInstanceOf(
      StoreUnavailableError,
    );
  });

  it.each([
    [fault('PreconditionFailed', 412), 'exists'],
    [fault('NoSuchUpload', 404), 'gone'],
  ])('answers a completion that met %s', async (error, expected) => {
    mock.on(CompleteMultipartUploadCommand).rejects(error);
    expect(await store.completeUpload(upload, [{ number: 1, etag: 'e' }], { ifAbsent: true })).toBe(expected);
    expect(mock.calls()[0]?.args[0].input).toMatchObject({
      UploadId: 'u1',
      IfNoneMatch: '*',
      MultipartUpload: { Parts: [{ PartNumber: 1, ETag: 'e' }] },
    });
  });

  it('does not mind aborting what is gone', async () => {
    mock.on(AbortMultipartUploadCommand).rejects(fault('NoSuchUpload', 404));
    await store.abortUpload(upload);
  });
});

describe('errors of S3', () => {
  it.each([
    [fault('NoSuchUpload', 404), NotFoundError],
    [fault('SlowDown', 503), StoreUnavailableError],
    [fault('AccessDenied', 403), AccessDeniedError],
    [fault('ExpiredToken', 400), StoreUnavailableError],
    [fault('RequestTimeTooSkewed', 403), StoreUnavailableError],
    [fault('EntityTooSmall', 400), InvalidInputError],
    [fault('AuthorizationHeaderMalformed', 400), StoreUnavailableError],
    [new Error('socket hang up'), StoreUnavailableError],
  ])('translates %s once and keeps it as the cause', async (cause, kind) => {
    mock.on(UploadPartCommand).rejects(cause);
    const writing = store.uploadPart(upload, 1, new Uint8Array());
    await expect(writing).rejects.toBeInstanceOf(kind);
    await expect(writing).rejects.toHaveProperty('cause', cause);
  });
});

describe('a bucket of another region', () => {
  const elsewhere = (name: string, status: number, headers: Readonly<Record<string, string>> = {}) =>
    Object.assign(fault(name, status), { $response: { headers } });
  const inIreland = { 'x-amz-bucket-region': 'eu-west-1' };

  it.each([
    [
      elsewhere('PermanentRedirect', 301, inIreland),
      'the bucket books lies in eu-west-1, which is not the region of',
    ],
    [
      elsewhere('AuthorizationHeaderMalformed', 400, inIreland),
      'the bucket books lies in eu-west-1, which is not',
    ],
    [elsewhere('IllegalLocationConstraintException', 400), 'the bucket books lies in another region than'],
    [elsewhere('UnknownError', 301), 'the bucket books lies in another region than'],
  ])('is named, whoever asks, and asked no more: %s', async (cause, message) => {
    mock.on(ListObjectsV2Command).rejects(cause).on(HeadObjectCommand).rejects(cause);
    mock.on(GetObjectCommand).rejects(cause).on(PutObjectCommand).rejects(cause);
    for (const asking of [
      () => collect(store.list({ bucket: 'books', key: 'x' })),
      () => store.head(place),
      () => store.readAll(place),
      () => store.write(place, new Uint8Array()),
    ]) {
      await expect(asking()).rejects.toBeInstanceOf(InvalidInputError);
      await expect(asking()).rejects.toThrow(message);
    }
  });
});

describe('pages and batches of S3', () => {
  it('follows pages and decodes keys', async () => {
    mock
      .on(ListObjectsV2Command)
      .resolvesOnce({
        EncodingType: 'url',
        Contents: [{ Key: 'a+b%2Bc', Size: 1, ETag: 'e' }],
        NextContinuationToken: 't',
      })
      .resolvesOnce({ EncodingType: 'url', Contents: [{ Key: 'd', Size: 2, ETag: 'f' }] });
    expect(await collect(store.list({ bucket: 'books', key: 'x' }))).toEqual([
      { key: 'a b+c', sizeBytes: 1, etag: 'e' },
      { key: 'd', sizeBytes: 2, etag: 'f' },
    ]);
    expect(mock.calls()[1]?.args[0].input).toMatchObject({ Prefix: 'x', ContinuationToken: 't' });
  });

  it('follows pages of uploads', async () => {
    mock
      .on(ListMultipartUploadsCommand)
      .resolvesOnce({
        IsTruncated: true,
        NextKeyMarker: 'k',
        NextUploadIdMarker: 'u',
        Uploads: [{ Key: 'k', UploadId: 'u' }],
      })
      .resolvesOnce({ IsTruncated: false, Uploads: [{ Key: 'l', UploadId: 'v' }] });
    expect(await collect(store.listUploads(place))).toEqual([
      { bucket: 'books', key: 'k', uploadId: 'u' },
      { bucket: 'books', key: 'l', uploadId: 'v' },
    ]);
    expect(mock.calls()[1]?.args[0].input).toMatchObject({ KeyMarker: 'k', UploadIdMarker: 'u' });
  });

  it('removes in batches of a thousand, and again what S3 could not remove at once', async () => {
    mock
      .on(DeleteObjectsCommand)
      .resolvesOnce({ Errors: [{ Key: 'k7', Code: 'InternalError' }] })
      .resolves({});
    await store.remove(
      'books',
      Array.from({ length: 2_001 }, (_, index) => `k${index}`),
    );
    const sizes = mock
      .commandCalls(DeleteObjectsCommand)
      .map(({ args }) => args[0].input.Delete?.Objects?.length);
    expect(sizes.toSorted((a = 0, b = 0) => a - b)).toEqual([1, 1, 1_000, 1_000]);
  });

  it('gives up on objects that cannot be removed', async () => {
    mock.on(DeleteObjectsCommand).resolves({ Errors: [{ Key: 'k', Code: 'InternalError' }] });
    await expect(store.remove('books', ['k'])).rejects.toBeInstanceOf(StoreUnavailableError);
  });

  it('asks once to remove what it may not', async () => {
    const refused = { Key: 'k', Code: 'AccessDenied', Message: 'Access Denied' };
    mock.on(DeleteObjectsCommand).resolves({ Errors: [refused] });
    await expect(store.remove('books', ['k'])).rejects.toThrow(
      'access denied: s3:DeleteObject on s3://books/k',
    );
    expect(mock.calls()).toHaveLength(1);
  });
});
