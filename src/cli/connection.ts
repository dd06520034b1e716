import type { fromNodeProviderChain } from '@aws-sdk/credential-providers';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import * as z from 'zod';
import { InvalidInputError } from '../contracts/errors.ts';
import { oneLine } from '../report/format.ts';
import { createPrivateFile, NotPrivateError, readOwnFile } from '../local/private-files.ts';
import type { ApiSettings, CredentialSource } from './api-client.ts';
import type { Console } from './console.ts';
import type { StackConnection } from './start-stack.ts';
import { badInput, ServiceUnavailableError, systemCode, systemReason } from './failures.ts';
import { isLiveProcess, startOf } from '../local/live-process.ts';

/** Where `outrider local` keeps its data unless it is told otherwise. */
export const defaultStateDir = '.outrider';

const fileName = 'connection.json';
/** What a shell reads to let AWS tools find the stack. */
export const environmentFileName = 'environment.sh';

const isHttpUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

const text = z.string().min(1);
/** A local stack listens on loopback: a file that names another machine came from elsewhere, with a project, say. */
const address = z
  .string()
  .refine((url) => isHttpUrl(url) && ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(url).hostname));
const connectionSchema = z.object({
  apiUrl: address,
  region: text,
  credentials: z.object({ accessKeyId: text, secretAccessKey: text, sessionToken: text.exactOptional() }),
  // Without these addresses the clients of S3 and of the logs would ask AWS, and send it the keys.
  environment: z
    .object({ AWS_ENDPOINT_URL_S3: address, AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: address })
    .catchall(z.string()),
  outputs: z.object({ DataBucketName: text }).catchall(z.string()),
  pid: z.int(),
  pidStart: z.int().exactOptional(),
});

/** Tells other commands how to reach the stack of this process. Only its user may read it: it holds keys. */
export async function writeConnection(stateDir: string, connection: StackConnection): Promise<void> {
  const { apiUrl, region, credentials, environment, outputs } = connection;
  const keeper = { pid: process.pid, pidStart: startOf(process.pid) };
  const document = { apiUrl, region, credentials, environment, outputs, ...keeper };
  const exports = Object.entries(environment).map(([name, value]) => `export ${name}=${quote(value)}\n`);
  await replace(join(stateDir, environmentFileName), exports.join(''));
  await replace(join(stateDir, fileName), `${JSON.stringify(document, undefined, 2)}\n`);
}

/** A new file in any case: an old one might be open to others. */
async function replace(path: string, text: string): Promise<void> {
  await rm(path, { force: true });
  await createPrivateFile(path, text);
}

/** As one word for a shell. */
export const quote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

/**
 * Takes the connection away; where there is none, that is no error. What shells read stays: the next stack in the
 * directory has the same keys, and the same ports where nobody has taken them.
 */
export async function removeConnection(stateDir: string): Promise<void> {
  await rm(join(stateDir, fileName), { force: true });
}

/** Thrown where nobody has said which service to ask, and none is up. */
export class NoServiceError extends InvalidInputError {}

/** Thrown where the local stack of a directory was not ended in order, and is not up. */
export class StackEndedError extends ServiceUnavailableError {}

/** The service that a command speaks to; `stack` is there where it is a local one. */
export interface Target {
  readonly api: ApiSettings;
  readonly stack?: StackConnection;
}

/**
 * Finds the service: `endpoint`, else `OUTRIDER_ENDPOINT`, both with the credentials of the AWS SDK's default
 * chain; else the stack that `outrider local` keeps up in `stateDir`.
 *
 * @throws NoServiceError where there is none of them, StackEndedError where that stack has ended, InvalidInputError where what
 * was said or found is no address.
 */
export async function findTarget(
  options: { readonly endpoint?: string | undefined; readonly stateDir?: string | undefined },
  console: Console,
): Promise<Target> {
  const stateDir = options.stateDir ?? defaultStateDir;
  const endpoint = options.endpoint ?? console.env.OUTRIDER_ENDPOINT;
  const reading = readConnection(resolve(console.cwd, stateDir));
  if (endpoint === undefined || endpoint === '') {
    const local = await reading;
    if (local === undefined) {
      throw new NoServiceError(
        `no service to ask: give --endpoint URL or set OUTRIDER_ENDPOINT, or keep "outrider local" up ` +
          `(there is none in ${stateDir})`,
      );
    }
    if (!isLiveProcess(local.pid, local.pidStart)) {
      throw new StackEndedError(
        `the local stack at ${local.apiUrl} has ended: start it again with "outrider local --state-dir ${quote(stateDir)}"`,
      );
    }
    return { api: local, stack: local };
  }
  // What cannot be read, or is another user's, says nothing of a service that is named.
  const local = await reading.catch(() => undefined);
  checkUrl(endpoint);
  if (local !== undefined && sameUrl(endpoint, local.apiUrl)) return { api: local, stack: local };
  return { api: { apiUrl: endpoint, ...(await awsIdentity(endpoint)) } };
}

async function readConnection(stateDir: string): Promise<z.output<typeof connectionSchema> | undefined> {
  const path = join(stateDir, fileName);
  let text: string | undefined;
  try {
    // Another user's would send this one's inputs to wherever they like.
    text = await readOwnFile(path);
  } catch (error) {
    if (error instanceof NotPrivateError) throw badInput(error.message, error);
    if (systemCode(error) === 'ENOTDIR') return undefined;
    throw badInput(`${path} cannot be read: ${systemReason(error)}`, error);
  }
  if (text === undefined) return undefined;
  try {
    return connectionSchema.parse(JSON.parse(text));
  } catch (error) {
    throw badInput(`${path} is not what "outrider local" writes: remove it and start the stack again`, error);
  }
}

function checkUrl(endpoint: string): void {
  if (!isHttpUrl(endpoint)) throw badInput(`endpoint "${endpoint}" must be an http:// or https:// address`);
}

const sameUrl = (a: string, b: string): boolean => a.replace(/\/+$/, '') === b.replace(/\/+$/, '');

/** As any AWS tool would find them: environment, profile, container, instance. */
async function awsIdentity(endpoint: string): Promise<Pick<ApiSettings, 'region' | 'credentials'>> {
  // Its address tells an API's region; what people have set otherwise must not make the signature wrong.
  const region = /\.execute-api\.([a-z0-9-]+)\.amazonaws\.com/.exec(endpoint)?.[1];
  const { S3Client } = await import('@aws-sdk/client-s3');
  const { config } = new S3Client(region === undefined ? {} : { region });
  const credentials = awsCredentials(endpoint);
  await credentials();
  if (region !== undefined) return { region, credentials };
  const found = await config.region().catch((error: unknown) => {
    throw badInput(`no AWS region for ${endpoint}: set AWS_REGION`, error);
  });
  return { region: found, credentials };
}

/** As the SDK says it, who knows which of its sources has failed; it does not say what to do where there is none. */
function noKeys(endpoint: string, error: unknown, isRenewal: boolean): Error {
  const said = error instanceof Error ? error.message : String(error);
  const why = noSource.test(said)
    ? 'set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
    : oneLine(said);
  const text = `no AWS credentials for ${endpoint}: ${why}`;
  // Whoever waits for the network waits for that of their keys too.
  if (isRenewal || isOfNetwork(error))
    return new ServiceUnavailableError(text, { isUnsent: true }, { cause: error });
  return badInput(text, error);
}

/** By words as well: some sources make an error of their own of the network's, and keep its text alone. */
function isOfNetwork(error: unknown): boolean {
  const faults = [error, error instanceof Error ? error.cause : undefined];
  return faults.some(
    (each) =>
      each instanceof Error && networkFault.test(`${each.name} ${systemCode(each) ?? ''} ${each.message}`),
  );
}

const networkFault =
  /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENETDOWN|EHOSTUNREACH|TimeoutError)\b/;
const noSource = /could not load credentials from any providers/i;

/**
 * The keys of the SDK's default chain, asked for anew before they run out, and where they were refused also read anew
 * from the files that hold them: somebody may have signed in again.
 */
export function awsCredentials(
  endpoint: string,
  chainOf: typeof fromNodeProviderChain = defaultChain,
): CredentialSource {
  let chain = chainOf();
  let kept: Awaited<ReturnType<typeof chain>> | undefined;
  return async ({ renew = false } = {}) => {
    if (renew) chain = chainOf({ ignoreCache: true });
    if (renew || kept === undefined || runsOutWithin(kept, earlyMs)) {
      const before = renew ? undefined : kept;
      kept = await chain().catch((error: unknown) => {
        // Until they have run out they are as good as new ones.
        if (before !== undefined && !runsOutWithin(before, 0)) return before;
        // Whoever has had keys may have them again: of a refresh without a network the SDK tells that a token has expired.
        throw noKeys(endpoint, error, before !== undefined);
      });
    }
    const { accessKeyId, secretAccessKey, sessionToken } = kept;
    return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
  };
}

/** The SDK's own, loaded once somebody asks for keys: commands on a stack of their own have theirs. */
function defaultChain(
  init?: Parameters<typeof fromNodeProviderChain>[0],
): ReturnType<typeof fromNodeProviderChain> {
  let chain: ReturnType<typeof fromNodeProviderChain> | undefined;
  return async (identity) => {
    const { fromNodeProviderChain: chainOf } = await import('@aws-sdk/credential-providers');
    chain ??= chainOf(init);
    return chain(identity);
  };
}

/** As early as the SDK itself does it. */
const earlyMs = 5 * 60_000;
const runsOutWithin = ({ expiration }: { readonly expiration?: Date }, ms: number): boolean =>
  expiration !== undefined && expiration.getTime() - Date.now() < ms;
