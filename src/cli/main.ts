import { Command, CommanderError } from 'commander';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { processConsole, type Console } from './console.ts';
import { describeFailure, ExitCode, exitCodeOf } from './failures.ts';
import { addExperimentsCommand } from './experiments-command.ts';
import { addGetCommand } from './get-command.ts';
import { addJobCommands } from './job-commands.ts';
import { addLocalCommand } from './local-command.ts';
import { addLogsCommand } from './logs-command.ts';
import { addRunCommand } from './run-command.ts';
import { addSimulateCommand } from './simulate-command.ts';
import { addSubmitCommand } from './submit-command.ts';

const examples = `
Examples:
  $ outrider run wordcount --input books/ --output counts      one command, nothing to set up
  $ outrider local                                             keep a stack up, and in another terminal:
  $ outrider submit sort --input big.txt --wait

"outrider <command> --help" tells more, with examples.`;

/** Runs one command and sets the exit code of the process; never throws. */
export async function run(args: readonly string[]): Promise<void> {
  endWithReader();
  process.exitCode = await execute(args, processConsole());
}

/**
 * A reader that has gone, as `head` does, wants no more: that ends the command, and is no failure to tell of. Commands
 * that have something to take down listen to signals, and do it.
 */
function endWithReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      if (process.listenerCount('SIGTERM') === 0) process.exit(ExitCode.interrupted);
      process.kill(process.pid, 'SIGTERM');
    });
  }
}

/** Runs one command on a console. Returns its exit code; errors become one line. */
export async function execute(args: readonly string[], console: Console): Promise<number> {
  let exitCode: number = ExitCode.done;
  const program = makeProgram(console, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has written its message, or the help or version that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.done : ExitCode.badInput;
    console.err(`${describeFailure(error, console.env)}\n`);
    return exitCodeOf(error);
  }
}

function makeProgram(console: Console, done: (exitCode: number) => void): Command {
  const program = new Command('outrider')
    .description('Data-parallel jobs on AWS Lambda and Fargate, or on this machine alone.')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: console.out,
      writeErr: console.err,
      // One line, whether or not there is a suggestion.
      outputError: (text, write) => {
        write(
          `outrider: ${text
            .trim()
            .replace(/^error: /, '')
            .replace(/\s*\n\s*/g, ' ')}\n`,
        );
      },
    })
    .addHelpText('after', examples);
  addRunCommand(program, console, done);
  addLocalCommand(program, console);
  addSubmitCommand(program, console, done);
  addJobCommands(program, console, done);
  addGetCommand(program, console);
  addLogsCommand(program, console);
  addSimulateCommand(program, console);
  addExperimentsCommand(program, console);
  return program;
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}

// Run directly, and not through outrider.js on a Node that is new enough.
if (import.meta.main) await run(process.argv.slice(2));
