import type { Command } from 'commander';
import * as z from 'zod';
import { describeInjection, type Injection } from '../local/inject/injection.ts';
import { renderInjected } from '../report/injected-line.ts';
import { join } from 'node:path';
import {
  defaultStateDir,
  environmentFileName,
  quote,
  removeConnection,
  writeConnection,
} from './connection.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { makeApiClient } from './api-client.ts';
import {
  dataBucketOf,
  failureOf,
  objectStoreOf,
  refusedStart,
  startEmbeddedStack,
  warningsOf,
  type StackConnection,
} from './embedded-stack.ts';
import { injectOption, parseInject } from './inject-option.ts';
import { withInterrupts } from './interrupts.ts';
import { Phases } from './phases.ts';
import { parseWhole } from './quantities.ts';
import { clearStaged } from './staged-use.ts';
import { openStateDir } from './state-dir.ts';

const examples = `
Examples:
  $ outrider local                        keeps its data in ${defaultStateDir}; Ctrl-C ends it
  $ outrider submit wordcount --input books/ --wait       in another terminal, same directory
  $ outrider local --port 8080 --slots 8 --state-dir /tmp/stack

Other commands find it by ${defaultStateDir}/connection.json, or by --state-dir. That file and what --json prints hold
the stack's keys: whoever has them can run programs as you.`;

const localOptionsSchema = z.object({
  port: z.string().optional(),
  slots: z.string().optional(),
  concurrency: z.string().optional(),
  inject: z.string().optional(),
  stateDir: z.string().default(defaultStateDir),
  json: z.boolean().default(false),
});

const highestPort = 65_535;
const mostSlots = 256;
/** One for a resident scheduler, one for the steps of jobs and the API, and one for workers. */
const leastConcurrency = 3;
const mostConcurrency = 1_000;

/** `outrider local`: an embedded stack until a signal ends it. */
export function addLocalCommand(program: Command, console: Console): void {
  program
    .command('local')
    .description('keep an embedded stack up on this machine; print how to reach it')
    .option('--port <n>', 'port of the REST API (default: any free one)')
    .option('--slots <n>', 'tasks of all jobs at once (default: one per core, at least 2)')
    .option(
      '--concurrency <n>',
      "executions of all functions at once, with the pauses of Lambda's queue (default: all that are needed)",
    )
    .addOption(injectOption())
    .option('--state-dir <dir>', "where the stack's data lie", defaultStateDir)
    .option('--json', 'print one JSON document once the stack is up')
    .addHelpText('after', examples)
    .action(async (_options: unknown, self: Command) => {
      const options = localOptionsSchema.parse(self.opts());
      await withInterrupts((signal) => runLocal(options, console, signal));
    });
}

async function runLocal(
  options: z.output<typeof localOptionsSchema>,
  console: Console,
  signal: AbortSignal,
): Promise<void> {
  const apiPort = options.port === undefined ? undefined : parseWhole('--port', options.port, 1, highestPort);
  const slots = options.slots === undefined ? undefined : parseWhole('--slots', options.slots, 1, mostSlots);
  const concurrency =
    options.concurrency === undefined
      ? undefined
      : parseWhole('--concurrency', options.concurrency, leastConcurrency, mostConcurrency);
  const injection = options.inject === undefined ? undefined : parseInject(options.inject);
  const state = await openStateDir(options.stateDir, console.cwd);
  const phases = new Phases(console, options.json);
  phases.enter('starting');
  try {
    const stack = await startEmbeddedStack({
      stateDir: state.path,
      onPhase: (phase) => {
        phases.enter(phase);
      },
      ...(apiPort === undefined ? {} : { apiPort }),
      ...(slots === undefined ? {} : { slots }),
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(injection === undefined ? {} : { injection }),
    }).catch((error: unknown) => refusedStart(error, state.path));
    phases.end();
    writeLines(console.err, warningsOf(stack));
    try {
      await writeConnection(state.path, stack);
      if (options.json) writeJson(console, connectionOf(stack));
      else writeLines(console.out, describe(stack, state.path, injection));
      const clearing = clearStagedOf(stack);
      try {
        await Promise.race([firing(signal), failureOf(stack, state.path)]);
      } finally {
        clearInterval(clearing);
      }
      const injected = stack.injected();
      if (injected !== undefined)
        writeLines(console.err, [`injected  ${renderInjected(injected, injection)}`]);
    } finally {
      await removeConnection(state.path);
      await stack.stop();
    }
  } finally {
    phases.end();
    await state.release();
  }
}

const clearEveryMs = 10 * 60_000;

/** Removes what people's submissions have uploaded once nobody needs it: now, and every ten minutes. */
function clearStagedOf(stack: StackConnection): NodeJS.Timeout {
  const clear = (): void => {
    const store = objectStoreOf(stack);
    // What cannot be removed now is removed the next time.
    void clearStaged(store, makeApiClient(stack), dataBucketOf(stack), Date.now()).catch(() => undefined);
  };
  clear();
  return setInterval(clear, clearEveryMs).unref();
}

/** Whole, keys included: a script that asks for it has them from there, and a person is shown none. */
const connectionOf = ({
  apiUrl,
  region,
  credentials,
  environment,
  outputs,
}: StackConnection): StackConnection => ({
  apiUrl,
  region,
  credentials,
  environment,
  outputs,
});

function describe(
  stack: StackConnection,
  stateDir: string,
  injection: Injection | undefined,
): readonly string[] {
  return [
    `endpoint  ${stack.apiUrl}`,
    `state     ${stateDir}`,
    ...(injection === undefined ? [] : [`injecting ${describeInjection(injection)}`]),
    '',
    'For the AWS CLI and SDKs, in another terminal:',
    `  . ${quote(join(stateDir, environmentFileName))}`,
    '',
    'Ctrl-C ends it.',
  ];
}

function firing(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
}
