import { createRequire } from 'node:module';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type * as duckdb from '@duckdb/node-api';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { StoreUnavailableError } from '../../contracts/errors.ts';
import { BadInputError, OutOfMemoryError } from '../../worker/operator.ts';
import type { EngineSize } from '../../worker/operator.ts';

type DuckDb = typeof duckdb;

const require = createRequire(import.meta.url);
let loaded: DuckDb | undefined;

/**
 * DuckDB's module, loaded by the first stage that needs it; undefined where this machine has none for its kind. Not by
 * `import`: bundles leave it out, and on Lambda it lies in a layer, through which only `require` looks.
 */
export function duckDb(): DuckDb | undefined {
  try {
    loaded ??= require(require.resolve('@duckdb/node-api')) as DuckDb;
  } catch {
    return undefined;
  }
  return loaded;
}

let isThere: boolean | undefined;

/**
 * Whether DuckDB can be had here, without loading it: whether the package and its binary for this machine are installed. Where
 * `size` says that there is to be none, there is none.
 */
export function hasDuckDb(size: EngineSize | undefined): boolean {
  isThere ??= loaded !== undefined || isInstalled();
  return isThere && size?.memoryBytes !== 0;
}

function isInstalled(): boolean {
  try {
    const fromApi = createRequire(require.resolve('@duckdb/node-api'));
    const fromBindings = createRequire(fromApi.resolve('@duckdb/node-bindings'));
    const machine = `@duckdb/node-bindings-${process.platform}-${process.arch}`;
    return ['', '-musl'].some((libc) => {
      try {
        return fromBindings.resolve(`${machine}${libc}/duckdb.node`) !== '';
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}

/** A text as SQL writes it. */
export const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`;
/** A name as SQL writes it. */
export const sqlName = (name: string): string => `"${name.replaceAll('"', '""')}"`;
/** What DuckDB says, without the place in the query that it shows below. */
export const firstLineOf = (cause: unknown): string =>
  cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);

/** What DuckDB says for want of memory, as a failure that a larger worker mends; of its advice nothing can be followed. */
function shortOfMemory(cause: unknown, { memoryBytes }: EngineSize): OutOfMemoryError | undefined {
  const [, what] = /^Out of Memory Error: (.*)/.exec(firstLineOf(cause)) ?? [];
  if (what === undefined) return undefined;
  const room = `${String(Math.floor(memoryBytes / 1024 / 1024))} MiB`;
  return new OutOfMemoryError(`DuckDB has too little memory on a worker of this size (${room}): ${what}`, {
    cause,
  });
}

/** What the disk that it works on does to DuckDB. Of other faults of a file its content may be the reason. */
const diskFault =
  /^IO Error: (.*(?:No space left on device|Disk quota exceeded|Too many open files|Input\/output error).*)/;

/** What DuckDB says of its scratch files, as a fault of the place: elsewhere the same may pass. */
function faultOfDisk(cause: unknown): StoreUnavailableError | undefined {
  const [, what] = diskFault.exec(firstLineOf(cause)) ?? [];
  if (what === undefined) return undefined;
  return new StoreUnavailableError(`DuckDB could not use its scratch files: ${what}`, {}, { cause });
}

/** Whether DuckDB itself says it, whose errors have neither names nor codes; want of memory and faults of the disk are other matters. */
const isOfDuckDb = (cause: unknown): boolean =>
  cause instanceof Error && cause.name === 'Error' && !('code' in cause);

/** What DuckDB cannot do as bad input, told by `what` it was; all else that is thrown stays as it is. */
export async function orBadInput<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!isOfDuckDb(cause)) throw cause;
    throw new BadInputError(`${what}: ${firstLineOf(cause)}`, { cause });
  }
}

/** One thread for what is small: each has buffers of its own. */
const defaultSize: EngineSize = { memoryBytes: 160 * 1024 * 1024, threads: 1 };

/** Until what was interrupted has ended. */
const interruptEveryMs = 50;

/** Where an engine may work. */
export interface EnginePlace {
  /** The only directory that it reads and writes; also takes what does not fit in memory. */
  readonly scratchDir: string;
  readonly size?: EngineSize | undefined;
  /** Ends what runs. */
  readonly signal: AbortSignal;
  /** Whether results that no ORDER BY orders come in the order of what is read; true where it is left out. */
  readonly keepsOrder?: boolean;
}

/**
 * A database in memory for one task. It reads and writes below its scratch directory and nowhere else, has no network, fetches and loads no
 * extension, and none of that can be changed by a statement: the settings are locked.
 */
export class Engine {
  readonly #instance: DuckDBInstance;
  readonly #connection: DuckDBConnection;
  readonly #size: EngineSize;
  readonly #signal: AbortSignal;
  readonly #interrupt: () => void;
  /** Calls under way. */
  #calls = 0;
  #interrupting: NodeJS.Timeout | undefined;

  private constructor(
    instance: DuckDBInstance,
    connection: DuckDBConnection,
    size: EngineSize,
    signal: AbortSignal,
  ) {
    this.#instance = instance;
    this.#connection = connection;
    this.#size = size;
    this.#signal = signal;
    this.#interrupt = () => {
      connection.interrupt();
      // DuckDB forgets it as a statement begins, and one may wait for a thread yet.
      if (this.#calls > 0)
        this.#interrupting = setInterval(() => {
          connection.interrupt();
        }, interruptEveryMs);
    };
    signal.addEventListener('abort', this.#interrupt, { once: true });
  }

  static async open({
    scratchDir,
    size = defaultSize,
    signal,
    keepsOrder = true,
  }: EnginePlace): Promise<Engine> {
    signal.throwIfAborted();
    const spillDir = join(scratchDir, 'spill');
    await mkdir(spillDir, { recursive: true });
    const module = duckDb();
    if (module === undefined)
      throw new BadInputError('this deployment has no DuckDB: deploy it with the setting duckdb');
    const instance = await module.DuckDBInstance.create(':memory:', {
      threads: String(size.threads),
      memory_limit: `${String(Math.floor(size.memoryBytes / 1024))}KiB`,
      temp_directory: spillDir,
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      allow_community_extensions: 'false',
      allow_unsigned_extensions: 'false',
      allow_persistent_secrets: 'false',
      // What a cluster computes must not hang on where a worker stands.
      default_null_order: 'nulls_last_on_asc_first_on_desc',
      preserve_insertion_order: String(keepsOrder),
    });
    const connection = await instance.connect();
    await connection.run("SET TimeZone = 'UTC'");
    await connection.run(`SET allowed_directories = [${sqlText(scratchDir)}]`);
    await connection.run('SET enable_external_access = false');
    await connection.run('SET lock_configuration = true');
    return new Engine(instance, connection, size, signal);
  }

  /** Runs a statement; answers how many rows a `COPY` has written. What else is answered is thrown away. */
  async run(sql: string): Promise<number> {
    const { rowsChanged } = await this.#asked(() => this.#connection.run(sql));
    return rowsChanged;
  }

  /** Asks DuckDB for something, unless the task is to end. */
  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    this.#signal.throwIfAborted();
    this.#calls += 1;
    try {
      return await ask();
    } catch (cause) {
      throw shortOfMemory(cause, this.#size) ?? faultOfDisk(cause) ?? cause;
    } finally {
      this.#calls -= 1;
      if (this.#calls === 0) clearInterval(this.#interrupting);
      // What was interrupted fails by that, and not by what DuckDB says of it.
      this.#signal.throwIfAborted();
    }
  }

  /** The rows of a query as JavaScript's values, some thousand at a time; big integers are `bigint`. */
  async *rows(sql: string): AsyncGenerator<readonly (readonly unknown[])[]> {
    const result = await this.#asked(() => this.#connection.stream(sql));
    for (;;) {
      const chunk = await this.#asked(() => result.fetchChunk());
      if (chunk === null || chunk.rowCount === 0) return;
      yield chunk.getRows();
    }
  }

  /** How many statements a text holds, and whether the first one is a query; throws where it is no SQL. */
  async statementsOf(sql: string): Promise<{ readonly count: number; readonly isSelect: boolean }> {
    const statements = await this.#asked(() => this.#connection.extractStatements(sql));
    if (statements.count !== 1) return { count: statements.count, isSelect: false };
    const prepared = await this.#asked(() => statements.prepare(0));
    const isSelect = prepared.statementType === duckDb()?.StatementType.SELECT;
    prepared.destroySync();
    return { count: 1, isSelect };
  }

  /** Gives memory and files back. */
  close(): void {
    this.#signal.removeEventListener('abort', this.#interrupt);
    clearInterval(this.#interrupting);
    this.#connection.closeSync();
    this.#instance.closeSync();
  }
}
