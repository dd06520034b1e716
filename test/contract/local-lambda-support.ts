import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import type { InvokeCommandInput, InvokeCommandOutput } from '@aws-sdk/client-lambda';
import { afterEach, beforeEach, expect } from 'vitest';

import { startLambdaServer } from '../../src/local/lambda/server.ts';
import type {
  DroppedEvent,
  LambdaServer,
  LambdaServerOptions,
  LocalFunction,
  LogEntry,
} from '../../src/local/lambda/server.ts';

export const CREDENTIALS = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'local-secret' };
export const REGION = 'eu-central-1';

/** Says that it has started, then waits for the file `gate` to appear. */
export const GATED = `
  const { existsSync } = require('node:fs');
  exports.handler = async (event) => {
    console.log('started ' + event.id);
    while (!existsSync(event.gate)) await new Promise((resolve) => setTimeout(resolve, 5));
    return process.pid;
  };`;

/** Of the running test. */
interface Stack {
  root: string;
  server: LambdaServer | undefined;
  client: LambdaClient;
  dropped: DroppedEvent[];
  lines: LogEntry[];
}

interface Watcher {
  readonly wanted: () => boolean;
  readonly resolve: () => void;
}

/** The payload of an answer, read as JSON. */
export function decode(output: InvokeCommandOutput): unknown {
  return JSON.parse(output.Payload?.transformToString() ?? 'null');
}

/** Matches any text of that pattern. */
export const text = (pattern: RegExp): unknown => expect.stringMatching(pattern);

/** Matches any list that holds `item`. */
export const textAmong = (item: string): unknown => expect.arrayContaining([item]);

/** A client of `endpoint` that does not retry. */
export function connect(endpoint: string, credentials = CREDENTIALS): LambdaClient {
  return new LambdaClient({ endpoint, region: REGION, credentials, maxAttempts: 1 });
}

function writeFixture(
  root: string,
  name: string,
  source: string,
  settings: Partial<LocalFunction> & { file?: string },
): LocalFunction {
  const { file = 'index.js', ...rest } = settings;
  const codeDir = join(root, 'code', name);
  mkdirSync(codeDir, { recursive: true });
  writeFileSync(join(codeDir, file), source);
  return {
    name,
    codeDir,
    handler: 'index.handler',
    timeoutMs: 20_000,
    memoryMb: 256,
    environment: {},
    asyncRetries: 0,
    maxEventAgeMs: 60_000,
    ...rest,
  };
}

/** Resolvers of conditions, tried anew at each event. */
class Watchers {
  private waiting: Watcher[] = [];

  notify(): void {
    this.waiting = this.waiting.filter(({ wanted, resolve }) => {
      if (!wanted()) return true;
      resolve();
      return false;
    });
  }

  until(wanted: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push({ wanted, resolve });
      this.notify();
    });
  }
}

function startStack(
  stack: Stack,
  notify: () => void,
  settings: Pick<LambdaServerOptions, 'functions'> & Partial<LambdaServerOptions>,
): Promise<LambdaServer> {
  return startLambdaServer({
    credentials: CREDENTIALS,
    region: REGION,
    maxConcurrency: 4,
    logDir: join(stack.root, 'logs'),
    nodePath: process.execPath,
    extraEnvironment: { STACK_ENDPOINT: 'http://stack' },
    asyncRetryDelayMs: () => 1,
    onLog: (entry) => {
      stack.lines.push(entry);
      notify();
    },
    onDropped: (event) => {
      stack.dropped.push(event);
      notify();
    },
    ...settings,
  });
}

/** For each test of the file: an empty folder, and the means to start a server and to call it. */
export function useLocalLambda() {
  const stack: Stack = {
    root: '',
    server: undefined,
    client: connect('http://127.0.0.1:9'),
    dropped: [],
    lines: [],
  };
  const watchers = new Watchers();
  const until = (wanted: () => boolean) => watchers.until(wanted);

  beforeEach(() => {
    stack.root = realpathSync(mkdtempSync(join(tmpdir(), 'local-lambda-')));
    stack.dropped = [];
    stack.lines = [];
  });
  afterEach(async () => {
    await stack.server?.close();
    stack.server = undefined;
    rmSync(stack.root, { recursive: true, force: true });
  });

  return {
    stack,
    until,
    fixture: (name: string, source: string, settings: Partial<LocalFunction> & { file?: string } = {}) =>
      writeFixture(stack.root, name, source, settings),
    start: async (functions: LocalFunction[], settings: Partial<LambdaServerOptions> = {}) => {
      stack.server = await startStack(
        stack,
        () => {
          watchers.notify();
        },
        { functions, ...settings },
      );
      stack.client = connect(stack.server.endpoint);
    },
    invoke: (name: string, event: unknown = {}, more: Partial<InvokeCommandInput> = {}) =>
      stack.client.send(new InvokeCommand({ FunctionName: name, Payload: JSON.stringify(event), ...more })),
    /** Resolves once so many lines hold `part`. */
    logged: (part: string, times = 1) =>
      until(() => stack.lines.filter(({ line }) => line.includes(part)).length >= times),
  };
}
