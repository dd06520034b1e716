import { isIP } from 'node:net';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { ECSClient } from '@aws-sdk/client-ecs';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { SFNClient } from '@aws-sdk/client-sfn';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import { NodeHttpHandler } from '@smithy/node-http-handler';

import { StoreUnavailableError } from '../../contracts/errors.ts';
import { epochMs } from '../../contracts/units.ts';
import type { WorkerCredentials } from './access-item.ts';
import { boundRequests } from './bound-requests.ts';
import { countDynamo, countLambda, type CountRequests, countS3 } from './count-requests.ts';
import type { AssumeRole } from './sts-job-access.ts';
import { keepExpressSessions } from './express-sessions.ts';
import type { S3StoreOptions } from './s3-object-store.ts';

/** What all clients share. Credentials and `AWS_ENDPOINT_URL*` are read by the SDK itself. */
export interface AwsSettings {
  readonly region: string;
  /** The process's environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whose rights the clients use; the process's own where nothing is said. Asked again before they run out. */
  readonly credentials?: () => Promise<WorkerCredentials>;
  /** Takes what each request comes to; nothing is counted where it is absent. */
  readonly count?: CountRequests;
}

const uncounted: CountRequests = () => undefined;

const MAX_SOCKETS = 50;
const CONNECTION_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 60_000;
/**
 * For what is answered within milliseconds. A connection may die without a word; then the call is made again on another
 * before a seat, a lease or the patience with a silent worker is over.
 */
const SHORT_TIMEOUT_MS = 5_000;
/** How long a zone may be silent where it is read: what it answers at all it answers within milliseconds. */
const ZONAL_SILENCE_MS = 3_000;
const MAX_ATTEMPTS = 5;
/** Writes to S3: some ten seconds of patience on average where it refuses them for their rate. */
const S3_MAX_ATTEMPTS = 8;
const ZONAL_MAX_ATTEMPTS = 3;
/** The scheduler tries a throttled launch again in a later tick; waiting inside would hold the tick. */
const LAUNCH_MAX_ATTEMPTS = 2;

/** The document client of the one table. */
export const dynamoClient = (settings: AwsSettings): DynamoDBDocumentClient =>
  DynamoDBDocumentClient.from(
    countDynamo(boundRequests(new DynamoDBClient(brief(settings)), MAX_SOCKETS), settings.count ?? uncounted),
    { marshallOptions: { removeUndefinedValues: true } },
  );

/** Path style where the endpoint is an address or localhost: names such as `bucket.127.0.0.1` resolve nowhere. */
export function s3Client(
  settings: AwsSettings,
  config: Pick<S3ClientConfig, 'maxAttempts' | 'requestChecksumCalculation'> = {},
  waits: Waits = {},
): S3Client {
  const client = new S3Client({
    ...common(settings, waits),
    maxAttempts: S3_MAX_ATTEMPTS,
    ...config,
    forcePathStyle: needsPathStyle(settings.env),
  });
  if (isOnThisMachine(settings.env)) leaveBodiesUnhashed(client);
  return countS3(client, settings.count ?? uncounted);
}

/**
 * For an `S3ObjectStore` that sends late parts again, under a second number: adds a checksum only where a request names one or
 * S3 demands it. The SDK gives one to each part, and parts that have one must be numbered from 1 without gaps. What is sent is
 * known by its SHA-256 all the same, which the signature holds.
 */
export const s3HedgingClient = (settings: AwsSettings): S3Client =>
  s3Client(settings, { requestChecksumCalculation: 'WHEN_REQUIRED' });

/**
 * Makes each request once. For the reads of an `S3ObjectStore`, which tries again itself: the SDK gives up after some
 * tries that know nothing of each other, and its adaptive mode, which slows down, gives up after as many.
 */
export const s3ReadClient = (settings: AwsSettings, waits: Waits = {}): S3Client =>
  countS3(
    new S3Client({
      ...common(settings, waits),
      maxAttempts: 1,
      forcePathStyle: needsPathStyle(settings.env),
    }),
    settings.count ?? uncounted,
  );

/**
 * Clients of directory buckets, which give up soon: where a zone is lost others are to hear of it. Reads wait so long for an
 * answer, and their store for more of one that has begun, since a stream of which nobody wants more is silent, too; what is
 * written may take its time, as long as anything of it goes out.
 */
export function s3ZonalClients(settings: AwsSettings): NonNullable<S3StoreOptions['zonal']> {
  const writes = { maxAttempts: ZONAL_MAX_ATTEMPTS };
  if (isOnThisMachine(settings.env))
    return {
      client: keepExpressSessions(s3Client(settings, writes)),
      reads: keepExpressSessions(s3ReadClient(settings)),
    };
  const silenceMs = ZONAL_SILENCE_MS;
  // The last of what is written may be on its way in the kernel's buffers, which looks like silence.
  const sending = { connectionMs: silenceMs, socketMs: SHORT_TIMEOUT_MS };
  const reading = { connectionMs: silenceMs, requestMs: silenceMs, socketMs: REQUEST_TIMEOUT_MS };
  return {
    client: keepExpressSessions(s3Client(settings, writes, sending)),
    reads: keepExpressSessions(s3ReadClient(settings, reading)),
    silenceMs,
  };
}

/** Client of asynchronous invocations, of all jobs of a process together; gives up early, see `LambdaEcsLauncher`. */
export const lambdaClient = (settings: AwsSettings): LambdaClient =>
  countLambda(
    boundRequests(new LambdaClient({ ...common(settings), maxAttempts: LAUNCH_MAX_ATTEMPTS }), MAX_SOCKETS),
    settings.count ?? uncounted,
  );

/** Client of Fargate tasks; gives up early, see `LambdaEcsLauncher`. */
export const ecsClient = (settings: AwsSettings): ECSClient =>
  new ECSClient({ ...common(settings), maxAttempts: LAUNCH_MAX_ATTEMPTS });

/** Client of the state machine. */
export const sfnClient = (settings: AwsSettings): SFNClient => new SFNClient(brief(settings));

/** Assumes roles with the process's own rights. */
export const assumeRoleBy =
  (settings: AwsSettings): AssumeRole =>
  async (params) => {
    const assume = fromTemporaryCredentials({ params, clientConfig: brief(settings) });
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = await assume();
    if (sessionToken === undefined || expiration === undefined)
      throw new StoreUnavailableError('STS gave keys without a token or an end', { role: params.RoleArn });
    return { accessKeyId, secretAccessKey, sessionToken, until: epochMs(expiration.getTime()) };
  };

/** On one machine no connection dies like that: what answers late there is busy, and would be more so by being asked again. */
const brief = (settings: AwsSettings) =>
  common(settings, isOnThisMachine(settings.env) ? {} : { requestMs: SHORT_TIMEOUT_MS });

/** How long a client waits, milliseconds. */
interface Waits {
  readonly connectionMs?: number;
  /** From a request to the beginning of its answer, with the time that its body takes to be sent. */
  readonly requestMs?: number;
  /** While nothing goes through its connection either way. */
  readonly socketMs?: number;
}

function common({ region, credentials }: AwsSettings, waits: Waits = {}) {
  const {
    connectionMs = CONNECTION_TIMEOUT_MS,
    requestMs = REQUEST_TIMEOUT_MS,
    socketMs = requestMs,
  } = waits;
  return {
    region,
    ...(credentials === undefined ? {} : { credentials }),
    maxAttempts: MAX_ATTEMPTS,
    retryMode: 'standard',
    requestHandler: new NodeHttpHandler({
      connectionTimeout: connectionMs,
      requestTimeout: requestMs,
      throwOnRequestTimeout: true,
      socketTimeout: socketMs,
      httpAgent: new HttpAgent({ keepAlive: true, maxSockets: MAX_SOCKETS }),
      httpsAgent: new HttpsAgent({ keepAlive: true, maxSockets: MAX_SOCKETS }),
    }),
  };
}

function needsPathStyle(env: AwsSettings['env']): boolean {
  const host = s3Host(env);
  return host === 'localhost' || isIP(host) !== 0;
}

/** Reached by the loopback interface, where nobody can change what is sent but who owns the machine. */
function isOnThisMachine(env: AwsSettings['env']): boolean {
  const host = s3Host(env);
  return host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Of the endpoint that is set for S3, without brackets; empty where none is. */
function s3Host(env: AwsSettings['env']): string {
  const endpoint = env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL;
  if (endpoint === undefined || !URL.canParse(endpoint)) return '';
  return new URL(endpoint).hostname.replace(/^\[|\]$/g, '');
}

/** The SDK says of its requests only that it does not know what they are. */
const headersOf = (request: unknown): Record<string, string> | undefined =>
  typeof request === 'object' && request !== null && 'headers' in request
    ? (request.headers as Record<string, string>)
    : undefined;

/**
 * Signs the CRC-32 of a body, which the service checks as it does a hash, and not its SHA-256 as well: over HTTP the SDK
 * has both made of each byte, on both sides. A request without such a checksum is signed as ever.
 */
function leaveBodiesUnhashed(client: S3Client): void {
  client.middlewareStack.add(
    (next) => (args) => {
      const headers = headersOf(args.request);
      if (headers?.['x-amz-checksum-crc32'] !== undefined)
        headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD';
      return next(args);
    },
    // After the checksum, which is of this step too; before the signature.
    { step: 'build', name: 'outriderUnhashedBody', priority: 'low', override: true },
  );
}
