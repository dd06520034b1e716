import { sep } from 'node:path';
import { OutputName } from '../contracts/settings.ts';
import type { InjectedCounts, Injection } from '../local/inject/injection.ts';
import type { ObjectFiles } from '../local/s3/object-files.ts';
import type { ApiCredentials } from './api-client.ts';
import { badInput, refusalInWords, ServiceUnavailableError, systemCode, systemReason } from './failures.ts';

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
  /** Its objects as files, where the stack lives in this process. */
  readonly objectFiles?: ObjectFiles;
  /** What its user should know of the data that it found. */
  readonly warnings?: readonly string[];
  /** Resolves, with why, where it cannot go on by itself; for a stack in this process. */
  readonly failed?: Promise<Error>;
  /** Resolves when a job may have ended, or the signal fires; for a stack in this process. */
  executionEnded?(signal: AbortSignal): Promise<void>;
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
  /** Whether finished jobs are learned from, as they are by default. */
  readonly learns?: boolean;
  /** Whether a job is about to be submitted: what it needs first is started at once. */
  readonly expectsJob?: boolean;
  /** What is to go wrong; nothing where it is absent. */
  readonly injection?: Injection;
  /** Told what is being done, where that takes its time. */
  readonly onPhase?: (phase: 'synthesizing' | 'starting') => void;
}

/** Starts the embedded stack; its code is loaded only here, since most commands do not need it. */
export async function startEmbeddedStack(options: StartOptions): Promise<EmbeddedStack> {
  const { startLocalStack } = await import('../local/stack.ts');
  return startLocalStack({
    stateDir: options.stateDir,
    handsFiles: true,
    ...(options.slots === undefined ? {} : { slots: options.slots }),
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    ...(options.expectsJob === undefined ? {} : { expectsJob: options.expectsJob }),
    ...(options.injection === undefined ? {} : { injection: options.injection }),
    ...(options.learns === undefined ? {} : { learns: options.learns }),
    ...(options.onPhase === undefined ? {} : { onPhase: options.onPhase }),
    ...(options.apiPort === undefined ? {} : { ports: { api: options.apiPort } }),
  });
}

/** Throws why a stack did not start, where the system or a port does not let it; any other error as it is. */
export function refusedStart(error: unknown, stateDir: string): never {
  if (!(error instanceof Error)) throw error;
  // As Node and our servers tell them.
  const { port, path = stateDir } = error as { readonly port?: number; readonly path?: string };
  if (error.name === 'PortTakenError')
    throw badInput(`port ${String(port)} is taken: end what listens there, or give another --port`, error);
  const code = systemCode(error);
  // A module that is missing and the like are nobody's refusal.
  if (code === undefined || code.startsWith('ERR_') || code === 'MODULE_NOT_FOUND') throw error;
  const refusal = refusalInWords(error);
  // No more processes, say, which passes.
  if (refusal === undefined)
    throw new ServiceUnavailableError(`the stack cannot be started: ${error.message}`, {}, { cause: error });
  if (port !== undefined)
    throw badInput(
      `port ${String(port)} cannot be listened at: ${refusal}; give another --port, such as one above 1023`,
      error,
    );
  throw badInput(
    `${path}${sep}`.startsWith(`${stateDir}${sep}`)
      ? `the stack cannot be started, since its data cannot be written to ${stateDir}: ${refusal}; name another place with --state-dir`
      : `the stack cannot be started: ${path}: ${refusal}`,
    error,
  );
}

/** Lines for the user about what a stack found as it started. */
export const warningsOf = ({ warnings = [] }: EmbeddedStack): readonly string[] =>
  warnings.map((warning) => `warning   ${warning}`);

/** Throws why a stack cannot go on, as on a full disk, once that is so. */
export async function failureOf({ failed }: EmbeddedStack, stateDir: string): Promise<never> {
  const error = await (failed ?? new Promise<never>(() => undefined));
  if (systemCode(error) === undefined) throw new ServiceUnavailableError(error.message, {}, { cause: error });
  throw badInput(
    `the stack has ended, since its data cannot be written to ${stateDir}: ${systemReason(error)}`,
    error,
  );
}

/** The bucket in which a stack keeps data of jobs. */
export function dataBucketOf(connection: StackConnection): string {
  const bucket = connection.outputs[OutputName.dataBucket];
  if (bucket === undefined) throw new Error(`the stack has no output ${OutputName.dataBucket}`);
  return bucket;
}
