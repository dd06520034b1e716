import { mkdir } from 'node:fs/promises';
import type { FaultHook } from '../http/fault-hook.ts';
import { PortTakenError } from '../http/listen.ts';
import type { Credentials, Principals } from '../http/principals.ts';
import { hasDynalite, startDynalite } from './dynalite.ts';
import { dynoxideBinary, startDynoxide } from './dynoxide.ts';
import { DynamoDbUnavailableError, type Engine } from './engine.ts';
import { startFront } from './front.ts';
import { RenewedEngine } from './renewed-engine.ts';

export { DynamoDbUnavailableError } from './engine.ts';

/** It keeps 2.7 KB of each request that comes over its standard streams: so many are some 50 MB, and a hundred small jobs. */
const dynoxideCalls = 20_000;

/** Which program plays DynamoDB: Dynoxide (Linux x64, the default there) or Dynalite (anywhere). */
export type DynamoDbEngine = 'dynoxide' | 'dynalite';

export interface DynamoDbOptions {
  /** Directory of the data files; made if missing. The data outlive the process. */
  readonly dir: string;
  /** Loopback port; 0 or absent takes a free one. */
  readonly port?: number;
  readonly credentials: Credentials;
  /** Whose keys are accepted; absent: `credentials` alone. */
  readonly principals?: Principals;
  readonly region: string;
  /** Absent: Dynoxide where its binary is installed, else Dynalite. */
  readonly engine?: DynamoDbEngine;
  /** Calls after which Dynoxide is started anew (default 20,000). */
  readonly renewAfterCalls?: number;
  readonly onRequest?: FaultHook;
  /** `host:port` of proxies before it that pass requests on as they were signed. */
  readonly hosts?: ReadonlySet<string>;
}

export interface DynamoDbProcess {
  /** `http://127.0.0.1:PORT`, ready to answer. */
  readonly endpoint: string;
  /** The database's own process, not a wrapper's: another one from time to time. */
  readonly pid: number;
  readonly engine: DynamoDbEngine;
  /** Settles once the process is gone, and none can be started in its place; or after `close`. */
  readonly exited: Promise<void>;
  /**
   * Makes a table for the stack itself, without a request; one that is there stays as it is.
   *
   * @returns why it was refused, or undefined.
   */
  createTable(definition: object): Promise<string | undefined>;
  /** Ends the process; safe to call twice. Data written before are kept. */
  close(): Promise<void>;
}

/**
 * Starts a local DynamoDB: a front on the loopback interface that checks who asks, and behind it, in a process of
 * its own that has no address, the database.
 *
 * The process ends with this one, however this one ends.
 *
 * @throws DynamoDbUnavailableError if no engine is installed, the port given is taken, or
 * the engine does not answer within 15 s.
 */
export async function startDynamoDb(options: DynamoDbOptions): Promise<DynamoDbProcess> {
  await mkdir(options.dir, { recursive: true, mode: 0o700 });
  const name = options.engine ?? installedEngine();
  const engine = await (name === 'dynoxide'
    ? RenewedEngine.start(() => startDynoxide(options.dir), {
        calls: options.renewAfterCalls ?? dynoxideCalls,
      })
    : RenewedEngine.start(() => startDynalite(options.dir), { calls: Number.POSITIVE_INFINITY }));
  try {
    const front = await startFront({ ...options, engine });
    return {
      endpoint: front.endpoint,
      get pid() {
        return engine.pid;
      },
      engine: name,
      exited: engine.exited,
      createTable: (definition) => createTable(engine, definition),
      close: async () => {
        await front.close();
        await engine.close();
      },
    };
  } catch (cause) {
    await engine.close();
    if (!(cause instanceof PortTakenError)) throw cause;
    throw new DynamoDbUnavailableError(`${name}: ${cause.message}`, { cause });
  }
}

async function createTable(engine: Engine, definition: object): Promise<string | undefined> {
  const { status, body } = await engine.perform('CreateTable', Buffer.from(JSON.stringify(definition)));
  return status === 200 || body.includes('ResourceInUseException') ? undefined : body;
}

function installedEngine(): DynamoDbEngine {
  if (dynoxideBinary() !== undefined) return 'dynoxide';
  if (hasDynalite()) return 'dynalite';
  throw new DynamoDbUnavailableError('neither dynoxide nor dynalite is installed');
}
