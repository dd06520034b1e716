import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Which program plays DynamoDB: Dynoxide (Linux x64, the default there) or Dynalite (anywhere). */
export type DynamoDbEngine = 'dynoxide' | 'dynalite';

export interface DynamoDbOptions {
  /** Directory of the data files; made if missing. The data outlive the process. */
  readonly dir: string;
  /** Loopback port; 0 or absent takes a free one. */
  readonly port?: number;
  /** Absent: Dynoxide where its binary is installed, else Dynalite. */
  readonly engine?: DynamoDbEngine;
}

export interface DynamoDbProcess {
  /** `http://127.0.0.1:PORT`, ready to answer. */
  readonly endpoint: string;
  /** The database's own process, not a wrapper's. */
  readonly pid: number;
  readonly engine: DynamoDbEngine;
  /** Settles once the process is gone, whoever ended it. */
  readonly exited: Promise<void>;
  /** Ends the process; safe to call twice. Data written before are kept. */
  close(): Promise<void>;
}

/** Thrown when no engine is installed or the engine does not answer in time. */
export class DynamoDbUnavailableError extends Error {
  override readonly name = 'DynamoDbUnavailableError';
}

const PORT_ATTEMPTS = 5;
const READY_LIMIT_MS = 15_000;
const READY_POLL_MS = 10;
const PROBE_LIMIT_MS = 2_000;
const END_LIMIT_MS = 3_000;
const LOG_LIMIT_CHARS = 8_192;

const require = createRequire(import.meta.url);

/**
 * Starts the program under a shell that becomes it (`exec`, so the id is the database's own)
 * after leaving a watchdog behind. The watchdog reads a pipe that only this process holds: a
 * line means that the database is being ended; the end of the pipe means that this
 * process is gone, even by `kill -9`, and the database must go too. `$$` in a subshell is
 * still the id of the shell that becomes the database.
 */
const WATCHED_EXEC =
  'exec 3<&0; (if ! read -r line <&3; then kill -TERM $$ && sleep 1 && kill -KILL $$; fi) >/dev/null 2>&1 & ' +
  'exec "$@" </dev/null 3<&-';

/**
 * Starts a local DynamoDB on the loopback interface and waits until it answers a request.
 *
 * The process ends with this one, however this one ends.
 *
 * @throws DynamoDbUnavailableError if no engine is installed, the port given is taken, or
 * the engine does not answer within 15 s.
 */
export async function startDynamoDb(options: DynamoDbOptions): Promise<DynamoDbProcess> {
  await mkdir(options.dir, { recursive: true });
  const engine = options.engine ?? installedEngine();
  const isPortFree = options.port === undefined || options.port === 0;

  // A free port may be taken by another process before the engine binds it, hence attempts.
  let failure: unknown;
  for (let attempt = 0; attempt < (isPortFree ? PORT_ATTEMPTS : 1); attempt++) {
    const port = isPortFree ? await freePort() : (options.port ?? 0);
    try {
      return await startOn(engine, options.dir, port);
    } catch (cause) {
      failure = cause;
    }
  }
  throw failure;
}

async function startOn(engine: DynamoDbEngine, dir: string, port: number): Promise<DynamoDbProcess> {
  const child = spawn('/bin/sh', ['-c', WATCHED_EXEC, 'sh', ...commandOf(engine, dir, port)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // A group of its own: Ctrl-C in a terminal must not take it away from those who still write their ends to it.
    detached: true,
  });
  const log = collectLog(child);
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      resolve();
    });
    child.once('error', () => {
      resolve();
    });
  });
  child.stdin.on('error', () => undefined); // The watchdog may be gone already.

  const endpoint = `http://127.0.0.1:${String(port)}`;
  const close = async (): Promise<void> => {
    // The watchdog must not signal an id that soon belongs to nobody. Told before the end: Node closes the pipe at it.
    if (child.stdin.writable) child.stdin.end('ended\n');
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    const isGone = await Promise.race([exited.then(() => true), delay(END_LIMIT_MS, false, { ref: false })]);
    if (!isGone) {
      child.kill('SIGKILL');
      await exited;
    }
  };

  const outcome = await Promise.race([waitUntilReady(endpoint, child), exited.then(() => 'ended' as const)]);
  if (outcome !== 'ready' || child.pid === undefined) {
    await close();
    throw new DynamoDbUnavailableError(
      `${engine} did not start on port ${String(port)} (${outcome}): ${log().trim()}`,
    );
  }
  return { endpoint, pid: child.pid, engine, exited, close };
}

function commandOf(engine: DynamoDbEngine, dir: string, port: number): string[] {
  switch (engine) {
    case 'dynoxide': {
      const binary = dynoxideBinary();
      if (binary === undefined)
        throw new DynamoDbUnavailableError('dynoxide is not installed for this platform');
      return [
        binary,
        'serve',
        '--host',
        '127.0.0.1',
        '--port',
        String(port),
        '--db-path',
        join(dir, 'dynamodb.sqlite'),
      ];
    }
    case 'dynalite':
      return [
        process.execPath,
        require.resolve('dynalite/cli.js'),
        '--host',
        '127.0.0.1',
        '--port',
        String(port),
        '--path',
        join(dir, 'dynamodb.level'),
        '--createTableMs',
        '0',
        '--deleteTableMs',
        '0',
        '--updateTableMs',
        '0',
      ];
  }
}

function installedEngine(): DynamoDbEngine {
  if (dynoxideBinary() !== undefined) return 'dynoxide';
  try {
    require.resolve('dynalite/cli.js');
    return 'dynalite';
  } catch (cause) {
    throw new DynamoDbUnavailableError('neither dynoxide nor dynalite is installed', { cause });
  }
}

function dynoxideBinary(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  try {
    return join(dirname(require.resolve('@dynoxide/linux-x64/package.json')), 'dynoxide');
  } catch {
    return undefined; // An optional dependency: its absence is no error.
  }
}

/** Polls, since neither engine tells reliably when it listens: Dynoxide prints before it binds. */
async function waitUntilReady(endpoint: string, child: ChildProcess): Promise<'ready' | 'no answer'> {
  const deadline = performance.now() + READY_LIMIT_MS;
  while (performance.now() < deadline && child.exitCode === null && child.signalCode === null) {
    if (await answersListTables(endpoint)) return 'ready';
    await delay(READY_POLL_MS);
  }
  return 'no answer';
}

/** A well-formed answer, so that another server on the same port is not taken for DynamoDB. */
async function answersListTables(endpoint: string): Promise<boolean> {
  try {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': 'DynamoDB_20120810.ListTables',
        'x-amz-date': '20200101T000000Z',
        // Both engines want a header of this shape; neither checks the signature.
        authorization:
          'AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/aws4_request, ' +
          'SignedHeaders=host;x-amz-date, Signature=0',
      },
      body: '{}',
      signal: AbortSignal.timeout(PROBE_LIMIT_MS),
    });
    const answer: unknown = await response.json();
    return response.ok && typeof answer === 'object' && answer !== null && 'TableNames' in answer;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const server = createServer();
  server.once('error', reject);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    server.close(() => {
      resolve(port);
    });
  });
  return promise;
}

/** Keeps the last output for the error message; the pipes must be read lest the child block. */
function collectLog(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-LOG_LIMIT_CHARS);
    });
  }
  return () => text;
}
