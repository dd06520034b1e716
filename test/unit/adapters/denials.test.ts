import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { DescribeExecutionCommand, SFNClient } from '@aws-sdk/client-sfn';
import { DynamoDBDocumentClient, GetCommand, QueryCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, it } from 'vitest';
import { denialOf } from '../../../src/adapters/aws/denials.ts';
import { DynamoTable } from '../../../src/adapters/aws/dynamo-table.ts';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { SfnCoordinator } from '../../../src/adapters/aws/sfn-coordinator.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { collect } from '../../contract/ports/builders.ts';

const fault = (name: string, status: number, message = name): Error =>
  Object.assign(new Error(message), { name, $metadata: { httpStatusCode: status } });
const asked = { action: 's3:GetObject', resource: 's3://books/a' };
const hint =
  ' (S3 answers so too for an object that is not there, where s3:ListBucket on its bucket is not granted)';
const user = 'User: arn:aws:sts::1:assumed-role/worker/x is not authorized to perform:';
const key = 'arn:aws:kms:eu-west-1:1:key/1234-ab';

describe('a denial', () => {
  it.each<[string, number, string, string]>([
    [
      'AccessDenied',
      403,
      'Access Denied',
      'access denied: s3:GetObject on s3://books/a: AccessDenied Access Denied',
    ],
    ['403', 403, '', 'access denied: s3:GetObject on s3://books/a: 403'],
    ['Forbidden', 403, 'UnknownError', 'access denied: s3:GetObject on s3://books/a: Forbidden UnknownError'],
    [
      'AccessDenied',
      403,
      `${user} s3:ListBucket on resource: "arn:aws:s3:::books" because no policy`,
      `access denied: s3:ListBucket on arn:aws:s3:::books: AccessDenied ${user} s3:ListBucket on resource: "arn:aws:s3:::books" because no policy`,
    ],
    [
      'AccessDenied',
      403,
      `${user} kms:Decrypt on resource: ${key} because`,
      `access denied: kms:Decrypt on s3://books/a, KMS key ${key}: AccessDenied ${user} kms:Decrypt on resource: ${key} because`,
    ],
    [
      'KMS.DisabledException',
      400,
      `${key} is disabled.`,
      `access denied: s3:GetObject on s3://books/a, by the state of its KMS key, KMS key ${key}: KMS.DisabledException ${key} is disabled.`,
    ],
  ])('%s (%i, %j) names action, resource and key', (name, status, message, expected) => {
    const denial = denialOf(fault(name, status, message), asked);
    expect(denial?.name).toBe('AccessDenied');
    expect(denial?.message).toBe(expected);
  });

  it.each([
    ['AccessDeniedException', 400],
    ['AllAccessDisabled', 403],
    ['InvalidAccessKeyId', 403],
    ['SignatureDoesNotMatch', 403],
    ['UnrecognizedClientException', 400],
    ['KMSAccessDeniedException', 502],
    ['KMSDisabledException', 502],
    ['KMSInvalidStateException', 502],
    ['KMSNotFoundException', 502],
    ['KMS.KMSInvalidStateException', 400],
    ['KmsAccessDeniedException', 400],
    ['KmsInvalidStateException', 400],
  ])('is %s (%i)', (name, status) => {
    expect(denialOf(fault(name, status), asked)?.name).toBe('AccessDenied');
  });

  it.each([
    ['ExpiredToken', 400, ''],
    ['ExpiredTokenException', 403, ''],
    ['RequestTimeTooSkewed', 403, ''],
    ['RequestExpired', 403, ''],
    ['InvalidSignatureException', 403, 'Signature expired: 20260101T000000Z is now earlier than'],
    ['KmsThrottlingException', 400, ''],
    ['ThrottlingException', 400, ''],
    ['SlowDown', 503, ''],
    ['ResourceNotFoundException', 400, ''],
    ['InternalError', 500, ''],
  ])('is not %s (%i, %j), which passes', (name, status, message) => {
    expect(denialOf(fault(name, status, message), asked)).toBeUndefined();
  });

  it('has a message of bounded length', () => {
    expect(denialOf(fault('AccessDenied', 403, 'x'.repeat(1e6)), asked)?.message.length).toBeLessThan(500);
  });
});

describe('of S3', () => {
  const mock = mockClient(S3Client);
  const store = new S3ObjectStore(new S3Client({ region: 'us-east-1' }));
  const place = { bucket: 'books', key: 'a/b' };
  beforeEach(() => {
    mock.reset();
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['a listing', () => collect(store.list(place)), 's3:ListBucket on s3://books/a/b: '],
    ['a head', () => store.head(place), `s3:GetObject on s3://books/a/b${hint}: `],
    ['a read', () => store.readAll(place), `s3:GetObject on s3://books/a/b${hint}: `],
    ['a write', () => store.write(place, new Uint8Array()), 's3:PutObject on s3://books/a/b: '],
  ])('%s is asked once and says what it lacks', async (_, call, what) => {
    for (const command of [
      ListObjectsV2Command,
      HeadObjectCommand,
      GetObjectCommand,
      PutObjectCommand,
    ] as never[])
      mock.on(command).rejects(fault('AccessDenied', 403, 'Access Denied'));
    await expect(call()).rejects.toThrow(
      expect.objectContaining({
        name: 'AccessDenied',
        message: `access denied: ${what}AccessDenied Access Denied`,
      }) as Error,
    );
    expect(mock.calls()).toHaveLength(1);
  });
});

describe('of DynamoDB and Step Functions', () => {
  it('names the action and the table', async () => {
    const client = new DynamoDBClient({ region: 'us-east-1' });
    const documents = DynamoDBDocumentClient.from(client);
    const mock = mockClient(documents);
    mock.onAnyCommand().rejects(fault('AccessDeniedException', 400, ''));
    const table = new DynamoTable(documents, 'jobs');
    const at = { pk: 'p', sk: 's' };
    await expect(table.get(at)).rejects.toThrow('access denied: dynamodb:GetItem on table jobs');
    await expect(table.update(at, { set: { a: 1 }, when: 'a' })).rejects.toThrow(
      'dynamodb:UpdateItem on table jobs',
    );
    expect(mock.commandCalls(GetCommand).length + mock.commandCalls(UpdateCommand).length).toBe(2);
    const query = table.query({ keys: '#pk = :pk', values: { pk: 'p' }, isConsistent: true });
    await expect(collect(query)).rejects.toThrow('dynamodb:Query on table jobs');
    expect(mock.commandCalls(QueryCommand)).toHaveLength(1);
    mock.reset();
    mock.onAnyCommand().rejects(fault('ResourceNotFoundException', 400));
    await expect(table.get(at)).rejects.toBeInstanceOf(StoreUnavailableError);
  });

  it('names the action and the execution', async () => {
    const client = new SFNClient({ region: 'us-east-1' });
    mockClient(client)
      .on(DescribeExecutionCommand)
      .rejects(fault('AccessDeniedException', 400, ''));
    const coordinator = new SfnCoordinator(client, 'arn:aws:states:us-east-1:1:stateMachine:jobs');
    await expect(coordinator.start('words-0123456789ab' as JobId)).rejects.toThrow(
      'access denied: states:DescribeExecution on execution words-0123456789ab',
    );
  });
});
