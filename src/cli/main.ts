import { Command, CommanderError } from 'commander';
import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { nearMiss } from '../contracts/known-fields.ts';
import { processConsole, type Console } from './console.ts';
import { badInput, describeFailure, ExitCode, exitCodeOf } from './failures.ts';
import { endUnread } from './interrupts.ts';

const examples = `
Examples:
  $ outrider run wordcount --input books/ --output counts      one command, nothing to set up
  $ outrider local                                             keep a stack up, and in another terminal:
  $ outrider submit sort --input big.txt --wait

"outrider <command> --help" tells more, with examples.`;

/** Runs one command and sets the exit code of the process; never throws. */
export async function run(args: readonly string[]): Promise<void> {
  // A reader that has gone wants no more, which is no failure to tell of.
  process.exitCode = await execute(args, processConsole(endUnread));
}

/** Runs one command on a console. Returns its exit code; errors become one line. */
export async function execute(args: readonly string[], console: Console): Promise<number> {
  let exitCode: number = ExitCode.done;
  try {
    const program = await makeProgram(args[0], console, (code) => {
      exitCode = code;
    });
    await program.parseAsync([...args], { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has written its message, or the help or version that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.done : ExitCode.badInput;
    console.err(`${describeFailure(error, console.env)}\n`);
    return exitCodeOf(error);
  }
}

type Add = (program: Command, console: Console, done: (exitCode: number) => void) => void;

/**
 * What adds which commands, in the order of the help. Loaded only where they are asked for: the simulator, the papers'
 * experiments and AWS's clients together take longer to load than a small job to run.
 */
const groups: readonly { readonly names: readonly string[]; readonly load: () => Promise<Add> }[] = [
  { names: ['run'], load: async () => (await import('./run-command.ts')).addRunCommand },
  { names: ['local'], load: async () => (await import('./local-command.ts')).addLocalCommand },
  { names: ['submit'], load: async () => (await import('./submit-command.ts')).addSubmitCommand },
  {
    names: ['status', 'attempts', 'watch', 'cancel', 'deadline', 'list'],
    load: async () => (await import('./job-commands.ts')).addJobCommands,
  },
  { names: ['report'], load: async () => (await import('./report-command.ts')).addReportCommand },
  { names: ['plan'], load: async () => (await import('./plan-command.ts')).addPlanCommand },
  { names: ['get'], load: async () => (await import('./get-command.ts')).addGetCommand },
  { names: ['explain'], load: async () => (await import('./explain-command.ts')).addExplainCommand },
  { names: ['logs'], load: async () => (await import('./logs-command.ts')).addLogsCommand },
  { names: ['simulate'], load: async () => (await import('./simulate-command.ts')).addSimulateCommand },
  {
    names: ['experiments'],
    load: async () => (await import('./experiments-command.ts')).addExperimentsCommand,
  },
  {
    names: ['openapi'],
    load: async () => {
      const { addOpenApiCommand } = await import('./openapi-command.ts');
      return (program, console) => {
        addOpenApiCommand(program, console, packageVersion());
      };
    },
  },
];

/** The program with the command that is asked for; with all where it is none of them, such as for their help. */
async function makeProgram(
  asked: string | undefined,
  console: Console,
  done: (exitCode: number) => void,
): Promise<Command> {
  const program = new Command('outrider')
    .description('Data-parallel jobs on AWS Lambda and Fargate, or on this machine alone.')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .hook('preAction', (_program, command) => {
      refuseEmpty(command);
    })
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: console.out,
      writeErr: console.err,
      // One line, whether or not there is a suggestion.
      outputError: (text, write) => {
        write(
          `outrider: ${withNearChoice(
            text
              .trim()
              .replace(/^error: /, '')
              .replace(/\s*\n\s*/g, ' '),
          )}\n`,
        );
      },
    })
    .addHelpText('after', examples);
  const wanted = groups.filter(({ names }) => asked !== undefined && names.includes(asked));
  for (const { load } of wanted.length > 0 ? wanted : groups) (await load())(program, console, done);
  return program;
}

/** What options ask for that name something, by their words in the help. */
const namesOfThings = /<(?:dir|file|file\.svg|url|name|token|s3-prefix|job|id)>$/;

/** An empty name, such as a shell makes of a variable that is not set, would stand for the working directory or for nothing. */
function refuseEmpty(command: Command): void {
  for (const option of command.options) {
    if (option.mandatory || command.getOptionValue(option.attributeName()) !== '') continue;
    if (namesOfThings.test(option.flags))
      throw badInput(`${option.long ?? option.flags} is empty: give it a value, or leave it out`);
  }
}

/** Commander names the choices of an option, and not the one that was most likely meant. */
function withNearChoice(message: string): string {
  const [, wrong = '', choices = ''] =
    /argument '(.*)' is invalid\. Allowed choices are (.*)\.$/.exec(message) ?? [];
  const meant = nearMiss(wrong, choices === '' ? [] : choices.split(', '));
  return meant === undefined ? message : `${message} (Did you mean ${meant}?)`;
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}

// Run directly, and not through outrider.js on a Node that is new enough.
if (import.meta.main) await run(process.argv.slice(2));
