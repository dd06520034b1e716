import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import * as z from 'zod';
import type { SubmitResponse } from '../contracts/api.ts';
import { AccessDeniedError, OutriderError, StoreRefusedError } from '../contracts/errors.ts';
import { OutputName } from '../contracts/settings.ts';
import { outputOf, renderJob } from '../report/job-table.ts';
import { type ApiClient, makeApiClient } from './api-client.ts';
import { findTarget, quote, type Target } from './connection.ts';
import { uploadCarried } from './carried.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { dataBucketOf, objectStoreOf } from './embedded-stack.ts';
import { badInput, ExitCode, ServiceUnavailableError } from './failures.ts';
import { withInterrupts } from './interrupts.ts';
import { addJobOptions, jobOptionsSchema } from './job-options.ts';
import { jobInLocalWords } from './local-words.ts';
import { Phases } from './phases.ts';
import type { PreparedJob } from './prepare-inputs.ts';
import { prepareJob } from './prepare-job.ts';
import { uploadNeeded } from './staged-upload.ts';
import { clearStaged, contentToken } from './staged-use.ts';
import { planStaging, type StagedSet } from './staging.ts';
import { objectsOf } from './target-objects.ts';
import { addTargetOptions, repeatedTarget, targetOptions } from './target-options.ts';
import { exitCodeOfJob, watchJob } from './watch-job.ts';

const examples = `
Examples:
  $ outrider submit wordcount --input s3://books/english/ --output s3://results/counts/ --deadline 30m
  $ outrider submit job.json --client-token nightly-2026-01-31 --wait
  $ outrider submit sort --input big.txt         local files: only with a stack of "outrider local"

Without --wait it returns once the job is accepted. Ctrl-C during --wait leaves the job running.`;

const submitOptionsSchema = jobOptionsSchema.extend({
  ...targetOptions,
  output: z.string().optional(),
  clientToken: z.string().optional(),
  dataBucket: z.string().optional(),
  wait: z.boolean().default(false),
  quiet: z.boolean().default(false),
  json: z.boolean().default(false),
});

type SubmitOptions = z.output<typeof submitOptionsSchema>;

/** `outrider submit`: starts a job on a service that is up. `done` takes the exit code. */
export function addSubmitCommand(program: Command, console: Console, done: (exitCode: number) => void): void {
  const command = program
    .command('submit')
    .description('start a job on a deployed service, or on a stack kept up by "outrider local"')
    .argument(
      '<job>',
      'wordcount, grep, sort, groupby, join, a job file (TypeScript), or a spec file (JSON)',
    );
  addTargetOptions(
    addJobOptions(command, 's3:// objects or prefixes (ending in /); local files with a local stack'),
  )
    .option('-o, --output <s3-prefix>', 's3://bucket/prefix/ for the parts (default: in the data bucket)')
    .option('--client-token <token>', 'two submissions of one job with one token start it once')
    .option('--data-bucket <name>', 'of a deployed service: where code and files that come with a job go')
    .option('--wait', 'show progress and return when the job has ended')
    .option('-q, --quiet', 'show no progress')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (job: string, _options: unknown, self: Command) => {
      const options = submitOptionsSchema.parse(self.opts());
      done(await withInterrupts((signal) => submit(job, options, console, signal)));
    });
}

async function submit(
  job: string,
  options: SubmitOptions,
  console: Console,
  signal: AbortSignal,
): Promise<number> {
  const target = await findTarget(options, console);
  const prepared = await prepareJob(job, options, {
    cwd: console.cwd,
    note: (text) => {
      console.err(`${text}\n`);
    },
    inputs: target.stack === undefined ? 's3' : 'any',
    objects: objectsOf(target),
    ...(options.output === undefined ? {} : { output: options.output }),
  });
  const client = makeApiClient(target.api);
  const { dataBucket } = options;
  const isTerminal = console.terminalColumns() !== undefined;
  const phases = new Phases(console, options.quiet || options.json);
  const staged = await stage(prepared, { target, client, dataBucket, isTerminal }, phases, signal).finally(
    () => {
      phases.end();
    },
  );
  const answer = await startJob(prepared, staged, client, options, { console, signal });
  const { quiet, json } = options;
  const before = answer.started ? '' : `job ${answer.jobId} was started before with this token\n`;
  if (!options.wait) {
    if (json) writeJson(console, answer);
    else console.out(`${answer.jobId}\n`);
    if (!quiet && !json) console.err(`${before}${nextSteps(answer.jobId, options)}`);
    return ExitCode.done;
  }
  if (!quiet && !json) console.err(before === '' ? `job ${answer.jobId}\n` : before);
  const watching = { quiet, signal, hasAnswered: true };
  const told = await watchJob(client, answer.jobId, console, watching).catch((error: unknown) => {
    // Nothing else may have told its id.
    console.err(`job ${answer.jobId} goes on\n${nextSteps(answer.jobId, options)}`);
    throw error;
  });
  const ended = jobInLocalWords(told, staged.sets);
  if (json) writeJson(console, ended);
  else writeLines(console.out, renderJob(ended, outputOf(ended), console.outStyle));
  await staged.release();
  return exitCodeOfJob(ended);
}

async function startJob(
  prepared: PreparedJob,
  staged: Staged,
  client: ApiClient,
  options: Pick<SubmitOptions, 'clientToken'>,
  { console, signal }: { readonly console: Console; readonly signal: AbortSignal },
): Promise<SubmitResponse> {
  const clientToken = options.clientToken ?? randomUUID();
  try {
    const spec = prepared.specWith(staged.uris, staged.bucket);
    const answer = await client.submit({ spec, clientToken }, signal);
    // A token of this command's own has started nothing before: it was sent again, as an answer was lost.
    return { ...answer, started: answer.started || options.clientToken === undefined };
  } catch (error) {
    const isOpen = mayBeAccepted(error, options.clientToken !== undefined);
    // A job that was accepted may yet read its inputs; of one that was refused nobody does.
    if (error instanceof Error && error.name === 'InvalidInput' && !isOpen) await staged.release();
    if (signal.aborted || isOpen)
      console.err(
        `the job may have been accepted: submit it again with --client-token ${quote(clientToken)}, which starts it once\n`,
      );
    throw error;
  } finally {
    staged.settle(); // From now on the job says what it reads.
  }
}

/**
 * Whether a job may be on record for a submission that failed. A service that is refused the start of its execution has
 * recorded it; the front of a local stack, which answers 507, has asked nobody, but an earlier try may have come through.
 */
function mayBeAccepted(error: unknown, isTokenGiven: boolean): boolean {
  if (!(error instanceof OutriderError)) return false;
  const { isUnsent, status } = error.details;
  // Whatever is refused now, also what is no longer accepted: an earlier try may have been.
  if (isUnsent === false) return true;
  if (error instanceof ServiceUnavailableError) return isUnsent !== true;
  if (error instanceof AccessDeniedError) return true;
  return error instanceof StoreRefusedError && (isTokenGiven || status !== 507);
}

/** What one does with a job that goes on. */
const nextSteps = (jobId: string, options: SubmitOptions): string =>
  [
    `  follow it         outrider watch ${jobId}${repeatedTarget(options)}\n`,
    `  get its output    outrider get ${jobId} <directory>${repeatedTarget(options)}\n`,
  ].join('');

/** Uploads of fewer bytes are over before a line in a log would tell anything. */
const leastShownBytes = 1024 * 1024;

/** Inputs and files of a job where its tasks can read them. */
interface Staged {
  readonly uris: readonly string[];
  /** The user's files, as they were uploaded. */
  readonly sets: readonly StagedSet[];
  readonly bucket: string;
  /** Says no more that this command is about to need them. */
  readonly settle: () => void;
  /** Says that this command needs them no more, and removes what nobody needs. */
  readonly release: () => Promise<void>;
}

/**
 * Uploads local inputs, to a local stack, and what comes with the job. All lie by their content, so that what is there
 * is not uploaded again, and are removed once neither a job nor another submission needs them.
 */
async function stage(
  prepared: PreparedJob,
  {
    target,
    client,
    dataBucket,
    isTerminal,
  }: {
    readonly target: Target;
    readonly client: ApiClient;
    readonly dataBucket: string | undefined;
    readonly isTerminal: boolean;
  },
  phases: Phases,
  signal: AbortSignal,
): Promise<Staged> {
  const { stack } = target;
  if (stack === undefined) return stageOnAws(prepared, { target, dataBucket }, signal);
  const bucket = dataBucketOf(stack);
  const store = objectStoreOf(stack);
  const files = prepared.sets.flat();
  const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const isShown = files.length > 0 && (isTerminal || totalBytes >= leastShownBytes);
  const onBytes = isShown ? phases.enterBytes('uploading', totalBytes, files.length) : undefined;
  const sets: StagedSet[] = [];
  for (const each of prepared.sets) sets.push(planStaging(bucket, each, await contentToken(each, signal)));
  const { carried } = prepared;
  const use = await uploadNeeded(
    store,
    bucket,
    { sets, carried },
    { signal, ...(onBytes === undefined ? {} : { onBytes }) },
  );
  return {
    bucket,
    uris: sets.map(({ uri }) => uri),
    sets,
    settle: use.settle,
    release: async () => {
      await use.takeBack();
      // What stays is removed with the next submission, or by the stack.
      await clearStaged(store, client, bucket, Date.now()).catch(() => 0);
    },
  };
}

/** On AWS what comes with a job is written anew each time, since the bucket drops what has grown old. */
async function stageOnAws(
  prepared: PreparedJob,
  { target, dataBucket }: { readonly target: Target; readonly dataBucket: string | undefined },
  signal: AbortSignal,
): Promise<Staged> {
  const nothing = {
    uris: [],
    sets: [],
    bucket: '',
    settle: () => undefined,
    release: () => Promise.resolve(),
  };
  if (prepared.carried.length === 0) return nothing;
  if (dataBucket === undefined)
    throw badInput(
      `--data-bucket is needed for code and files that come with a job to a deployed service: its stack names it in the output ${OutputName.dataBucket}`,
    );
  await uploadCarried(objectsOf(target), dataBucket, prepared.carried, { signal, isRefreshed: true });
  return { ...nothing, bucket: dataBucket };
}
