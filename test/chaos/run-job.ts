import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ConflictError, InvalidInputError } from '../../src/contracts/errors.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { finalJobStates, type JobRecord } from '../../src/contracts/records.ts';
import { apartBucket, type ChaosSystem } from './chaos-system.ts';
import type { JobCase } from './job-case.ts';
import { Mischief } from './mischief.ts';

const pollMs = 150;

/** How one submission of a case went. */
export interface Ran {
  readonly jobId?: string;
  /** Prefix of its output. */
  readonly output: string;
  /** The job as it was at last; undefined where it was refused. */
  readonly job?: JobRecord;
  /** Why it was refused. */
  readonly refused?: string;
  readonly isHung: boolean;
}

/** What became of a case. */
export interface Outcome {
  readonly drawn: JobCase;
  /** The job itself, and of a race the other one. */
  readonly ran: readonly Ran[];
  /** What was done to it. */
  readonly mischief: readonly string[];
  readonly tookMs: number;
}

const specOf = (drawn: JobCase, bucket: string, output: string): JobSpecInput => {
  const { workload, terms, index } = drawn;
  const stages = workload.stages((name) => `s3://${bucket}/input/${String(index)}/${name}`);
  return {
    name: `chaos-${String(index)}`,
    stages: stages.map((stage) => ({ ...stage, worker: { kind: terms.kind } })),
    policy: terms.policy,
    ...(terms.policyConfig === undefined ? {} : { policyConfig: terms.policyConfig }),
    output,
  };
};

/** Submits and tells the id; a refusal is an answer, too. */
async function submit(
  chaos: ChaosSystem,
  spec: JobSpecInput,
  { token, times }: { readonly token: string; readonly times: number },
): Promise<{ jobId: string } | { refused: string }> {
  const request = { spec, clientToken: token };
  try {
    const answers = await Promise.all(Array.from({ length: times }, () => chaos.system.api.submit(request)));
    const ids = new Set(answers.map(({ jobId }) => jobId));
    if (ids.size !== 1) throw new Error(`one client token started ${ids.size} jobs: ${[...ids].join(', ')}`);
    return { jobId: answers[0]?.jobId ?? '' };
  } catch (cause) {
    if (cause instanceof ConflictError || cause instanceof InvalidInputError)
      return { refused: cause.message };
    throw cause;
  }
}

async function ended(
  chaos: ChaosSystem,
  jobId: string,
  limitMs: number,
): Promise<{ job: JobRecord; isHung: boolean }> {
  const until = Date.now() + limitMs;
  for (;;) {
    const job = await chaos.system.api.job(jobId);
    if (finalJobStates.includes(job.state)) return { job, isHung: false };
    if (Date.now() > until) return { job, isHung: true };
    await delay(pollMs);
  }
}

/** Where the outputs of a case go: its own, and that of the job that races with it. */
function placesOf({ seed, isApart, story }: JobCase, dataBucket: string): { own: string; other?: string } {
  const name = createHash('sha256').update(seed).digest('hex').slice(0, 8);
  const base = `s3://${isApart ? apartBucket : dataBucket}/results/${name}/`;
  const own = `${base}out/`;
  if (story.kind !== 'race') return { own };
  return { own, other: story.other === '..' ? base : `${own}${story.other}` };
}

async function tellStory(chaos: ChaosSystem, { story }: JobCase, jobId: string): Promise<string | undefined> {
  if (story.kind !== 'cancel' && story.kind !== 'abort') return undefined;
  await delay(story.afterMs);
  try {
    if (story.kind === 'cancel') await chaos.system.api.cancel(jobId);
    else await chaos.abort(jobId);
    return story.kind;
  } catch (cause) {
    return `${story.kind} refused: ${String(cause).slice(0, 60)}`; // Its job had ended.
  }
}

/** Runs what was drawn for one job, to its end or to the limit of time. */
export async function runJob(chaos: ChaosSystem, drawn: JobCase, limitMs: number): Promise<Outcome> {
  const { workload, foreign, index, seed } = drawn;
  const { system } = chaos;
  const began = Date.now();
  for (const { name, body } of workload.materials) await system.put(`${String(index)}/${name}`, body);
  const places = placesOf(drawn, system.bucket);
  const early = new Mischief(chaos, '', places.own);
  early.begin({ strikes: [], snags: [], foreign: foreign.filter(({ afterMs }) => afterMs === undefined) });
  await delay(0);
  await early.settled();

  const outputs = [places.own, ...(places.other === undefined ? [] : [places.other])];
  const mischief: string[] = [...early.done];
  const ran = await Promise.all(
    outputs.map(async (output, number): Promise<Ran> => {
      const token = createHash('sha256').update(`${system.dir} ${seed} ${number}`).digest('hex');
      const times = drawn.story.kind === 'submit-twice' ? 3 : 1;
      const answer = await submit(chaos, specOf(drawn, system.bucket, output), { token, times });
      if ('refused' in answer) return { output, refused: answer.refused, isHung: false };
      const { jobId } = answer;
      const harm = new Mischief(chaos, jobId, output);
      // One of two that race is enough to harm; the other wins or loses beside it.
      if (number === 0) {
        harm.begin({ ...drawn, foreign: foreign.filter(({ afterMs }) => afterMs !== undefined) });
      }
      const telling = number === 0 ? tellStory(chaos, drawn, jobId) : undefined;
      const end = await ended(chaos, jobId, limitMs);
      const told = await telling;
      if (told !== undefined) mischief.push(told);
      await harm.end();
      mischief.push(...harm.done);
      return { output, jobId, ...end };
    }),
  );
  return { drawn, ran, mischief, tookMs: Date.now() - began };
}
