import type { JobProfile, ProfiledInput, StageProfile } from './job-profile.ts';
import { mostGrowth } from './resize-profile.ts';

/** A stage of a job that has not run: what it does, and what is known of its size. */
export interface NewStage {
  readonly name: string;
  /** What it runs: the name of an operator, or `code`. */
  readonly operator: string;
  readonly tasks: number;
  /** What it reads of sources; undefined where nobody knows. What it reads of stages follows from those. */
  readonly sourceBytes?: number | undefined;
  readonly inputs: readonly ProfiledInput[];
}

/** What a stage of a finished job has come to, as its record tells. */
export interface RunStage {
  readonly operator: string;
  readonly tasks: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly workerMs: number;
}

/** A profile that others' runs have told. */
export interface SimilarProfile {
  readonly profile: JobProfile;
  /** Finished stages behind it. */
  readonly samples: number;
  /** Those of the given stages that are behind it. */
  readonly used: ReadonlySet<RunStage>;
}

/** Of finished jobs those that a profile rests on: one of its stages is behind it. Others only ended at about that time. */
export const jobsBehind = (
  { used }: Pick<SimilarProfile, 'used'>,
  jobs: readonly { readonly stages: readonly RunStage[] }[],
): number => jobs.filter(({ stages }) => stages.some((each) => used.has(each))).length;

/** Times of a stage's tasks about their mean, which is all that records tell: nine quantiles of a log-normal, σ = 0.5. */
const spreadOfTasks = [0.44, 0.6, 0.7, 0.8, 0.9, 1, 1.15, 1.37, 2.04];
/** Finished stages of one operator that are looked at, the newest first. */
const mostSamples = 30;

/** Operators of which no run tells anything: nobody has run them, or only on far less in a task. */
interface Unknown {
  readonly unknown: readonly string[];
  readonly onLess: readonly string[];
}

/**
 * A profile of a job that never ran, by what others have taken for the same operators: time by bytes where both are
 * known, else by task; the bytes that a stage passes on by the share that others passed on. Of runs whose tasks read much less
 * nothing follows, nor of user code from another's. Operators that nothing is known of are named.
 *
 * @param finished - stages of finished jobs, the newest first.
 */
export function similarProfile(
  stages: readonly NewStage[],
  finished: readonly RunStage[],
): SimilarProfile | Unknown {
  const byOperator = Map.groupBy(
    finished.filter(({ tasks, workerMs, operator }) => tasks > 0 && workerMs > 0 && operator !== 'code'),
    ({ operator }) => operator,
  );
  const unknown = stages.filter(({ operator }) => !byOperator.has(operator)).map(({ operator }) => operator);
  if (unknown.length > 0) return { unknown: [...new Set(unknown)], onLess: [] };
  const outBytes: (number | undefined)[] = [];
  let samples = 0;
  const used = new Set<RunStage>();
  const onLess = new Set<string>();
  const profiled = stages.map((stage): StageProfile => {
    const bytes = bytesOf(stage, outBytes);
    const known = (byOperator.get(stage.operator) ?? [])
      .filter((run) => tells(run, stage.tasks, bytes))
      .slice(0, mostSamples);
    if (known.length === 0) onLess.add(stage.operator);
    samples += known.length;
    for (const each of known) used.add(each);
    // Of what nobody has run nothing is known to come.
    outBytes.push(bytes === undefined || known.length === 0 ? undefined : bytes * shareOut(known));
    const later = known.flatMap((run) => {
      const meanMs = meanTaskMs(run, stage.tasks, bytes);
      return spreadOfTasks.map((part) => part * meanMs);
    });
    return {
      name: stage.name,
      tasks: stage.tasks,
      inputs: stage.inputs,
      runs: [{ slots: 1, times: { cold: [], first: [], later: later.sort((a, b) => a - b) } }],
      queueMs: [],
      failureShare: 0,
    };
  });
  if (onLess.size > 0) return { unknown: [], onLess: [...onLess] };
  return { profile: { stages: profiled }, samples, used };
}

/** Whether what the tasks of a run took says what those take that read so many bytes in all; where nobody knows how many, it does. */
const tells = (run: RunStage, tasks: number, bytes = 0): boolean =>
  bytes / Math.max(1, tasks) <= (mostGrowth * run.bytesIn) / run.tasks;

/** What a stage reads in all; undefined where some of it is unknown. */
function bytesOf(
  { sourceBytes, inputs }: NewStage,
  outBytes: readonly (number | undefined)[],
): number | undefined {
  const read = inputs.map(({ stage }) => outBytes[stage]);
  if (read.includes(undefined) || (sourceBytes === undefined && inputs.length === 0)) return undefined;
  return read.reduce<number>((sum, each) => sum + (each ?? 0), sourceBytes ?? 0);
}

/** Of what it reads, what an operator passes on. */
function shareOut(runs: readonly RunStage[]): number {
  const [read, passed] = runs.reduce(
    ([ins, outs], { bytesIn, bytesOut }) => [ins + bytesIn, outs + bytesOut],
    [0, 0],
  );
  return read === 0 ? 1 : passed / read;
}

/** What a task takes in the mean, by what a finished stage took for its bytes, or for each of its tasks. */
function meanTaskMs(run: RunStage, tasks: number, bytes: number | undefined): number {
  const perTask = run.workerMs / run.tasks;
  if (bytes === undefined || run.bytesIn === 0) return perTask;
  // A task takes time to begin, however little it reads: a tenth of what it took there, at the least.
  return Math.max(perTask / 10, (bytes / Math.max(1, tasks)) * (run.workerMs / run.bytesIn));
}
