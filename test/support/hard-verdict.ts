import { decisionsOf } from '../../src/contracts/decision-log.ts';
import { type AttemptId, type JobId, taskOf } from '../../src/contracts/ids.ts';
import { parseUri } from '../../src/contracts/keys.ts';
import type { AttemptRecord, JobRecord } from '../../src/contracts/records.ts';
import type { Decision } from '../../src/core/model/decision.ts';
import type { HardAccount } from './hard-account.ts';

/** What a job has come to that ran in a hard account. */
export interface HardVerdict {
  readonly job: JobRecord;
  /** Output parts in order, laid end to end. */
  readonly output: string;
  /** Attempts by the decision log, in order, each once. */
  readonly launched: readonly Extract<Decision, { kind: 'launch' }>[];
  /** Attempts that were decided on beyond the first of their tasks, its failures and its copies. */
  readonly unexplained: readonly string[];
  /** Attempts that were given up or failed. */
  readonly failed: readonly AttemptId[];
  /** Attempts that more than one worker has worked on. */
  readonly workedTwice: readonly string[];
  /** Attempts that the launcher was asked for more often than schedulers have entered the job. */
  readonly launchedTooOften: readonly string[];
  /** What is left in the store but the inputs and the output, and uploads. */
  readonly left: readonly string[];
  readonly usedSlots: number;
  readonly enlisted: number;
}

async function decisionsOfJob({ stores }: HardAccount, jobId: JobId): Promise<readonly Decision[]> {
  const all: Decision[] = [];
  let version = 0;
  for await (const entry of stores.decisions.read(jobId)) {
    all.push(...decisionsOf(jobId, entry, version));
    version = entry.version;
  }
  return all;
}

const isCopy = ({ reason }: { readonly reason: string }): boolean =>
  reason === 'backup' || reason === 'clone' || reason === 'restart';

function failuresOf(decisions: readonly Decision[], attempts: readonly AttemptRecord[]): AttemptId[] {
  const failed = new Set<AttemptId>();
  for (const each of decisions) if (each.kind === 'lose') failed.add(each.attemptId);
  for (const { attemptId, state } of attempts)
    if (state === 'failed' || state === 'lost') failed.add(attemptId);
  return [...failed];
}

/** Looks at what a job has left, and says what its log and its records cannot explain. */
export async function verdictOf(account: HardAccount, jobId: JobId): Promise<HardVerdict> {
  const { stores, objects } = account;
  const job = await stores.jobs.load(jobId);
  if (job === undefined) throw new Error('the job vanished');
  const decisions = await decisionsOfJob(account, jobId);
  const { attempts } = await stores.attempts.all({ jobId, shards: job.shards ?? 1 });
  const launched = [
    ...new Map(
      decisions.flatMap((each) => (each.kind === 'launch' ? [[each.attemptId, each]] : [])),
    ).values(),
  ];
  const failed = failuresOf(decisions, attempts);
  const tasks = Map.groupBy(launched, ({ attemptId }) => taskOf(attemptId));
  const unexplained = [...tasks].flatMap(([task, launches]) => {
    const due = 1 + launches.filter(isCopy).length + failed.filter((id) => taskOf(id) === task).length;
    return launches.length > due ? [`${task}: ${String(launches.length)} for ${String(due)}`] : [];
  });
  const worked = Map.groupBy(
    account.workers.filter(({ outcome }) => outcome !== undefined && outcome !== 'refused'),
    ({ attemptId }) => attemptId,
  );
  const asked = Map.groupBy(account.launches, (attemptId) => attemptId);
  const { keys, output } = await storedBy(objects, job);
  const left = [];
  for (const key of keys) left.push(key);
  for (const bucket of ['data', 'input'])
    for await (const upload of objects.listUploads({ bucket, key: '' })) left.push(`upload of ${upload.key}`);
  return {
    ...{ job, output, launched, failed, unexplained, left },
    workedTwice: [...worked].flatMap(([id, workers]) => (workers.length > 1 ? [id] : [])),
    launchedTooOften: [...asked].flatMap(([id, calls]) => (calls.length > account.entries ? [id] : [])),
    usedSlots: (await stores.ledger.view()).usedSlots,
    enlisted: (await stores.roster.view(100)).jobs.length,
  };
}

async function storedBy(
  objects: HardAccount['objects'],
  job: JobRecord,
): Promise<{ readonly keys: readonly string[]; readonly output: string }> {
  const { bucket, key: prefix } = parseUri(job.output) ?? { bucket: 'data', key: '' };
  const all: string[] = [];
  for await (const { key } of objects.list({ bucket, key: '' })) all.push(key);
  const parts = all.filter((key) => key.startsWith(prefix) && /\/part-\d+$/.test(key)).toSorted();
  const bodies = [];
  for (const key of parts) bodies.push(await objects.readAll({ bucket, key }));
  return {
    keys: all.filter((key) => job.state !== 'succeeded' || !key.startsWith(prefix)),
    output: Buffer.concat(bodies).toString('latin1'),
  };
}
