import { S3Client } from '@aws-sdk/client-s3';
import { S3ObjectStore } from '../adapters/aws/s3-object-store.ts';
import { OutputName } from '../contracts/settings.ts';
import type { InjectedCounts, Injection } from '../local/inject/injection.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { ApiCredentials } from './api-client.ts';

/** What a client needs to reach an embedded stack; also what `connection.json` holds. */
export interface StackConnection {
  readonly apiUrl: string;
  readonly region: string;
  readonly credentials: ApiCredentials;
  /** Variables by which AWS clients find it. */
  readonly environment: Readonly<Record<string, string>>;
  /** CloudFormation outputs by name. */
  readonly outputs: Readonly<Record<string, string>>;
}

/** The embedded stack, as far as the command uses it. */
export interface EmbeddedStack extends StackConnection {
  /** What has been injected so far; undefined where nothing was to be. */
  injected(): InjectedCounts | undefined;
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly stateDir: string;
  readonly slots?: number;
  /** Concurrent executions of its Lambda; absent: as many as it needs. */
  readonly concurrency?: number;
  /** Port of the API; any free one where it is absent. */
  readonly apiPort?: number;
  /** What is to go wrong; nothing where it is absent. */
  readonly injection?: Injection;
}

/** Starts the embedded stack; its code is loaded only here, since most commands do not need it. */
export async function startEmbeddedStack(options: StartOptions): Promise<EmbeddedStack> {
  const { startLocalStack } = await import('../local/stack.ts');
  return startLocalStack({
    stateDir: options.stateDir,
    ...(options.slots === undefined ? {} : { slots: options.slots }),
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    ...(options.injection === undefined ? {} : { injection: options.injection }),
    ...(options.apiPort === undefined ? {} : { ports: { api: options.apiPort } }),
  });
}

/** The objects of a stack, over its S3. */
export function objectStoreOf(connection: StackConnection): ObjectStore {
  const endpoint = connection.environment.AWS_ENDPOINT_URL_S3 ?? connection.environment.AWS_ENDPOINT_URL;
  return new S3ObjectStore(
    new S3Client({
      region: connection.region,
      credentials: connection.credentials,
      // Buckets of the embedded stack have no host names of their own.
      ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    }),
  );
}

/** The bucket in which a stack keeps data of jobs. */
export function dataBucketOf(connection: StackConnection): string {
  const bucket = connection.outputs[OutputName.dataBucket];
  if (bucket === undefined) throw new Error(`the stack has no output ${OutputName.dataBucket}`);
  return bucket;
}
