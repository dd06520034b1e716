import { replayJob } from '../app/replay-job.ts';
import type { PolicyName } from '../contracts/policy-names.ts';
import { OtherPolicy } from '../core/replay/compare-policy.ts';
import type { ReplayedTick } from '../core/replay/replay-journal.ts';
import { type SimulatedOutcome, simulateRecorded, traceOfRecorded } from '../experiments/recorded-job.ts';
import { taskCount } from '../traces/trace-job.ts';
import { UnreadableRecordError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { finalJobStates } from '../contracts/records.ts';
import { renderOtherPolicy, renderReplay } from '../report/replay-report.ts';
import { type Console, writeJson, writeLines } from './console.ts';
import { ExitCode } from './failures.ts';
import { givenJob } from './given-job.ts';
import { findJobSource, type JobSource } from './job-source.ts';

interface ReplayOptions {
  readonly endpoint?: string | undefined;
  readonly stateDir?: string | undefined;
  readonly json: boolean;
  /** Another policy that decides beside the recorded one. */
  readonly policy?: PolicyName | undefined;
}

/** The seeds of each simulation, and the most tasks of a job that is simulated. */
const seeds = 5;
const mostTasks = 20_000;

/**
 * Goes through a recorded job again, and prints whether it came out alike; answers the exit code. Throws
 * `UnreadableRecordError` that names the job where it has no journal, or a spoilt one, or one of another version.
 */
export async function runReplay(jobText: string, options: ReplayOptions, console: Console): Promise<number> {
  const jobId = givenJob(jobText);
  const source = await findJobSource(jobId, options, console);
  const first = await source.journal();
  if (first.pieces.length === 0 && first.cursor === undefined) throw await nothingKept(jobId, source);
  const other = options.policy === undefined ? undefined : new OtherPolicy(options.policy);
  let last: ReplayedTick | undefined;
  const onTick = (tick: ReplayedTick): void => {
    last = tick;
    other?.onTick(tick);
  };
  const report = await replayJob((cursor) => source.journal(cursor), onTick).catch((cause: unknown) => {
    if (!(cause instanceof UnreadableRecordError)) throw cause;
    throw new UnreadableRecordError(
      `job ${jobId} cannot be gone through again: ${cause.message}`,
      { jobId },
      { cause },
    );
  });
  const isAlike = report.reproduced === report.ticks;
  const compared = other?.comparison();
  const told =
    compared === undefined || last === undefined
      ? undefined
      : { ...compared, simulated: await simulated(jobId, last, compared.policy) };
  if (options.json) writeJson(console, { ...report, ...(told === undefined ? {} : { other: told }) });
  else {
    writeLines(console.out, renderReplay(report, console.outStyle));
    if (told !== undefined) writeLines(console.out, ['', ...renderOtherPolicy(told, console.outStyle)]);
  }
  return isAlike ? ExitCode.done : ExitCode.jobFailed;
}

/** Why a job has nothing to be gone through by. */
async function nothingKept(jobId: JobId, source: JobSource): Promise<UnreadableRecordError> {
  const isOver = source.seenUntil !== undefined || finalJobStates.includes((await source.job()).state);
  const why = isOver
    ? 'what its schedulers had learned is not kept: they write it down once a minute and as they leave the job, and what they had not written is lost with them'
    : 'nothing is kept of it yet: its scheduler writes down once a minute what it has learned';
  return new UnreadableRecordError(`job ${jobId} cannot be gone through again: ${why}`, { jobId });
}

/** The recorded policy and the other in the simulator, on the work that the job was seen to have; none of too little or too much. */
async function simulated(
  jobId: string,
  { state, at, config, budget }: ReplayedTick,
  policy: PolicyName,
): Promise<readonly SimulatedOutcome[]> {
  const trace = traceOfRecorded(jobId, state, at);
  const { policy: recorded = 'none', policyConfig } = config;
  if (trace === undefined || typeof recorded !== 'string' || taskCount(trace) > mostTasks) return [];
  const slots = budget.clusterSlots ?? budget.slots;
  const outcomes: SimulatedOutcome[] = [];
  for (const each of new Set([recorded, policy]))
    outcomes.push(await simulateRecorded(trace, { policy: each, policyConfig, slots, seeds }));
  return outcomes;
}
