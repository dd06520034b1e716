import { setTimeout as delay } from 'node:timers/promises';
import { parseUri, successName } from '../../src/contracts/keys.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import type { ChaosSystem } from './chaos-system.ts';
import type { Foreign, JobCase } from './job-case.ts';
import { mischiefFailed } from './mischief.ts';
import type { Outcome, Ran } from './run-job.ts';

/** An object that a part or the mark of success may be refused for. */
const isInside = ({ what, name }: Foreign): boolean => what === 'object' && name.startsWith('/');

/** Keys under a prefix. */
async function keysUnder(chaos: ChaosSystem, bucket: string, key: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const object of chaos.system.objects.list({ bucket, key })) keys.push(object.key);
  return keys;
}

const listed = (keys: readonly string[]): string =>
  keys.map((key) => key.split('/').slice(-2).join('/')).join(', ');

/** What is wrong with how a job ended, given what was done to it. */
function endProblem(drawn: JobCase, { job, isHung, refused }: Ran): string | undefined {
  const mayConflict = drawn.story.kind === 'race' || drawn.foreign.some(isInside);
  if (isHung) return `is ${job?.state ?? 'nowhere'} for ever`;
  if (refused !== undefined || job === undefined)
    return mayConflict && /output/.test(refused ?? '') ? undefined : `was refused: ${String(refused)}`;
  if (job.state === 'succeeded') return undefined;
  if (job.state === 'cancelled' && ['cancel', 'abort'].includes(drawn.story.kind)) return undefined;
  if (job.state === 'failed') {
    const why = job.error?.message ?? '';
    if (drawn.workload.mayFail === true || drawn.story.kind === 'abort') return undefined;
    if (mayConflict && /output|written by another/.test(why)) return undefined;
    // Fail is invoked only by a snag that stands for a Finish that the state machine has given up.
    if (
      drawn.snags.some(({ repeat }) => repeat === 'Fail') &&
      /States\.Timeout/.test(`${why} ${job.error?.name ?? ''}`)
    )
      return undefined;
  }
  return `ended as ${job.state}: ${job.error?.name ?? ''} ${job.error?.message ?? ''}`;
}

/** What is wrong with what lies under the output prefix of a job that has ended. */
async function outputProblem(
  chaos: ChaosSystem,
  { drawn, ran }: Outcome,
  { job, output }: Ran,
): Promise<string | undefined> {
  const place = parseUri(output) ?? { bucket: '', key: '' };
  const foreign = new Set(chaos.strangers.keysUnder(place.bucket, place.key));
  // Of two that race over a prefix and one below it, one's output lies under the other's.
  for (const other of ran) {
    const below = parseUri(other.output)?.key ?? '';
    if (below === place.key || !below.startsWith(place.key) || other.job?.state !== 'succeeded') continue;
    for (const { key } of other.job.parts) foreign.add(key);
    foreign.add(below + successName);
  }
  const shares = ran.filter((other) => other.output === output && other.job?.state === 'succeeded');
  const found = (await keysUnder(chaos, place.bucket, place.key)).filter((key) => !foreign.has(key));
  if (job?.state !== 'succeeded') {
    if (shares.length > 0) return undefined; // It is the winner's, and looked at there.
    return found.length === 0
      ? undefined
      : `${job?.state ?? 'refused'}, but its output holds ${listed(found)}`;
  }
  const expected = [...job.parts.map(({ key }) => key), place.key + successName].toSorted();
  if (JSON.stringify(found) !== JSON.stringify(expected))
    return `its output holds ${listed(found)} where ${listed(expected)} were expected`;
  return drawn.workload.differs(await chaos.system.output(job)) ?? (await successProblem(chaos, job, place));
}

async function successProblem(
  chaos: ChaosSystem,
  job: JobRecord,
  { bucket, key }: { bucket: string; key: string },
): Promise<string | undefined> {
  const text = Buffer.from(await chaos.system.objects.readAll({ bucket, key: key + successName })).toString();
  const manifest = JSON.parse(text) as { jobId?: string; parts?: unknown };
  if (manifest.jobId !== job.jobId) return `${successName} is of ${String(manifest.jobId)}`;
  const isSame = JSON.stringify(manifest.parts) === JSON.stringify(job.parts);
  return isSame ? undefined : `${successName} names other parts than the job's record`;
}

/** Two that overlap may both succeed only if one had ended when the other was made. */
function raceProblem({ ran }: Outcome): string | undefined {
  const [one, two] = ran.map(({ job }) => job);
  if (one?.state !== 'succeeded' || two?.state !== 'succeeded') return undefined;
  const isAfter = (late: JobRecord, early: JobRecord): boolean =>
    late.createdAt >= (early.endedAt ?? Infinity);
  return isAfter(one, two) || isAfter(two, one) ? undefined : 'two jobs wrote to overlapping outputs at once';
}

/** What a job that failed has published is taken back after its end is recorded, within this time. */
const patienceMs = 20_000;
const lookMs = 500;

/** Everything that is wrong with a case whose jobs have ended; nothing where all is exact. */
export async function problemsOf(chaos: ChaosSystem, outcome: Outcome): Promise<readonly string[]> {
  const until = Date.now() + patienceMs;
  for (;;) {
    const found = await problemsNow(chaos, outcome);
    const isRemoving = outcome.ran.some(({ job }) => job?.state === 'failed' || job?.state === 'cancelled');
    if (found.length === 0 || !isRemoving || Date.now() > until) return found;
    await delay(lookMs);
  }
}

async function problemsNow(chaos: ChaosSystem, outcome: Outcome): Promise<readonly string[]> {
  // A fault that could not be made would let a case pass that tests nothing.
  const found = [raceProblem(outcome), ...outcome.mischief.filter((told) => told.startsWith(mischiefFailed))];
  for (const ran of outcome.ran) {
    const name = ran.jobId ?? ran.output;
    for (const problem of [
      endProblem(outcome.drawn, ran),
      ran.isHung ? undefined : await outputProblem(chaos, outcome, ran),
    ])
      if (problem !== undefined) found.push(`${name} ${problem}`);
  }
  return found.filter((each) => each !== undefined);
}
