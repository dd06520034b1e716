import { decisionsOf } from '../../src/contracts/decision-log.ts';
import { type AttemptId, attemptParts, isCopy, type JobId, taskOf } from '../../src/contracts/ids.ts';
import { partName } from '../../src/contracts/keys.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { AttemptRecord, JobRecord } from '../../src/contracts/records.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { Decision } from '../../src/core/model/decision.ts';
import { HardAccount } from './hard-account.ts';
import { HardProcess, type Ill } from './hard-process.ts';

/** What becomes of an output; or the job's own input is removed. */
export const harms = ['removed', 'truncated', 'flipped'] as const;

/** An output is harmed before the `before`-th worker begins: the `which`-th of those that are there, round and round. */
export interface Loss {
  readonly before: number;
  readonly which: number;
  readonly harm: (typeof harms)[number] | 'source';
}

export interface LossyJob {
  readonly spec: JobSpecInput;
  readonly input: string;
  readonly losses: readonly Loss[];
  /** How many uploads of output parts are given up under the job before each Finish. */
  readonly uploads?: readonly number[];
  readonly ills?: Readonly<Record<string, readonly Ill[]>>;
  readonly taskMs?: number;
}

export interface LossyOutcome {
  readonly job: JobRecord;
  readonly attempts: readonly AttemptRecord[];
  readonly output: string;
  /** Attempts whose output was harmed; of parts, tasks whose upload was given up. */
  readonly harmed: ReadonlySet<string>;
  readonly decisions: readonly Decision[];
  readonly events: readonly string[];
}

async function decisionsOfJob({ stores }: HardAccount, jobId: JobId): Promise<readonly Decision[]> {
  const all = new Map<string, Decision>();
  let version = 0;
  for await (const entry of stores.decisions.read(jobId)) {
    // Whoever takes over repeats the last entry.
    for (const each of decisionsOf(jobId, entry, version)) all.set(JSON.stringify(each), each);
    version = entry.version;
  }
  return [...all.values()];
}

/** Runs a job of an account in virtual time whose outputs are removed, cut and changed while it runs. */
export async function lossyJob({
  spec,
  input,
  losses,
  uploads = [],
  ...hardship
}: LossyJob): Promise<LossyOutcome> {
  const { ills = {}, taskMs = 500 } = hardship;
  const harmed = new Set<string>();
  let [begun, finishes] = [0, 0];
  let outcome: LossyOutcome | undefined;
  const onBegin = async (name: string, account: HardAccount): Promise<void> => {
    if (name === 'finish') {
      const count = uploads[finishes++] ?? 0;
      for (const upload of (await account.uploads()).slice(0, count)) {
        await account.objects.abortUpload(upload);
        harmed.add(upload.key);
      }
    }
    if (!name.includes('/')) return;
    begun += 1;
    for (const { which, harm } of losses.filter(({ before }) => before === begun)) {
      const id = await harmOne(account, which, harm);
      if (id !== undefined) harmed.add(id);
    }
  };
  const process = (name: string, clock: Clock): HardProcess => new HardProcess(clock, ills[name] ?? []);
  await HardAccount.use(
    { taskMs, process, onBegin, deathToldMs: 2_000 },
    async (account) => {
      await account.objects.write({ bucket: 'input', key: 'a' }, Buffer.from(input));
      return account.run(spec);
    },
    async (account, jobId) => {
      const job = await account.stores.jobs.load(jobId);
      if (job === undefined) throw new Error('no such job');
      const output = await outputOf(account, job);
      const decisions = await decisionsOfJob(account, jobId);
      const { shards = 1 } = job;
      const { attempts } = await account.stores.attempts.all({ jobId, shards });
      outcome = { job, attempts, output, harmed, decisions, events: account.events };
    },
  );
  if (outcome === undefined) throw new Error('the job came to nothing');
  return outcome;
}

/** Harms an output of the job; answers whose. Empty ones have nobody who reads them. */
async function harmOne(account: HardAccount, which: number, harm: Loss['harm']): Promise<string | undefined> {
  if (harm === 'source') {
    await account.objects.remove('input', ['a']);
    return undefined;
  }
  const there: { readonly key: string; readonly sizeBytes: number }[] = [];
  for await (const object of account.objects.list({ bucket: 'data', key: 'jobs/' }))
    if (object.key.includes('/data/') && object.sizeBytes > 0) there.push(object);
  const found = there[which % Math.max(1, there.length)];
  if (found === undefined) return undefined;
  const ref = { bucket: 'data', key: found.key };
  const bytes = await account.objects.readAll(ref);
  const middle = Math.floor(bytes.length / 2);
  if (harm === 'removed') await account.objects.remove('data', [found.key]);
  else if (harm === 'truncated') await account.objects.write(ref, bytes.subarray(0, middle));
  else {
    const flipped = Uint8Array.from(bytes);
    flipped[middle] = (flipped[middle] ?? 0) ^ 0x10;
    await account.objects.write(ref, flipped);
  }
  return found.key.split('/').slice(-3).join('/');
}

async function outputOf({ objects }: HardAccount, job: JobRecord): Promise<string> {
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/(.*)$/.exec(job.output) ?? [];
  const texts: string[] = [];
  for await (const { key } of objects.list({ bucket, key: prefix }))
    if (!key.endsWith('_SUCCESS')) texts.push(Buffer.from(await objects.readAll({ bucket, key })).toString());
  return texts.join('');
}

/** What is wrong with how a job has dealt with losses: none of these may ever be. */
export function complaintsOf({ job, harmed, decisions }: LossyOutcome): readonly string[] {
  const lost = decisions.filter((each) => each.kind === 'lose-output');
  // What is copied from a harmed output is as harmed.
  const isCopyOf = (key: string, id: AttemptId): boolean =>
    isCopy(attemptParts(id).attempt) && key.startsWith(`${taskOf(id)}/`);
  const isHarmed = (id: AttemptId): boolean =>
    harmed.has(id) || [...harmed].some((key) => isPartOf(key, id) || isCopyOf(key, id));
  const redone = decisions.filter((each) => each.kind === 'launch' && each.reason === 'recompute');
  const times = Map.groupBy(redone, (each) => ('attemptId' in each ? taskOf(each.attemptId) : ''));
  const lossesOf = (task: string): number =>
    lost.filter((each) => taskOf(each.attemptId) === task && each.use === undefined).length;
  return [
    ...(job.state === 'succeeded' ? [] : [`${job.state}: ${String(job.error?.message)}`]),
    ...lost.flatMap(({ attemptId }) => (isHarmed(attemptId) ? [] : [`${attemptId} was there`])),
    ...[...times].flatMap(([task, launches]) =>
      launches.length > lossesOf(task) ? [`${task} was made again ${launches.length} times`] : [],
    ),
    ...(new Set(lost.map(({ attemptId }) => attemptId)).size === lost.length ? [] : ['lost twice']),
  ];
}

const isPartOf = (key: string, id: AttemptId): boolean => key.endsWith(partName(attemptParts(id).task));
