import { invariant } from '../contracts/errors.ts';
import { type AttemptId, attemptParts } from '../contracts/ids.ts';
import { stageKey } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Plan } from '../contracts/plan.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';
import type { Decision } from '../core/model/decision.ts';
import { stageAt, taskAt } from '../core/model/job-state.ts';
import { ridersOf } from '../core/model/packs.ts';
import { savedFor } from '../core/model/taken-up.ts';
import { copiesToRead } from '../core/model/upstream-copies.ts';
import { holdMsOf } from '../core/policy/elsewhere.ts';
import { nearlyAllEndMs } from '../core/policy/expected-run.ts';
import { wantedZone } from '../core/policy/mantri/place-stages.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { Launcher, LaunchRequest } from '../ports/launcher.ts';
import type { Log } from '../ports/log.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { type Journal, observe } from './journal.ts';
import type { LaunchQueue } from './launch-queue.ts';
import { type OpenStage, spansOf } from './open-stage.ts';
import { writeManifest } from './write-manifest.ts';
import type { JobState } from '../core/model/job-view.ts';

export interface PerformDeps {
  readonly attempts: AttemptStore;
  readonly launcher: Launcher;
  readonly objects: ObjectStore;
  readonly dataBucket: string;
  readonly log: Pick<Log, 'warn'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** A job in the hands of its scheduler. */
export interface RunningJob {
  readonly plan: Plan;
  readonly state: JobState;
  readonly openStages: Map<number, OpenStage>;
  readonly heartbeatMs: DurationMs;
  /** Longest time between two ticks of its scheduler; absent: 0. */
  readonly tickMs?: DurationMs;
  /** The word by which attempts find the job's session; undefined on hosts that have no sessions. */
  access?: string | undefined;
  /** The launches that were decided on and not made yet; absent: none can be under way. */
  readonly launches?: Pick<LaunchQueue, 'recorded'>;
  /** Where it is written down what it learns and decides; absent: nowhere. */
  readonly journal?: Journal | undefined;
}

/** Parallel writes to the store of one tick. */
const parallelism = 32;

const spaceOf = (job: RunningJob): TaskSpace => ({ jobId: job.plan.jobId, shards: job.plan.shards });

function stageIndexOf(job: RunningJob, name: string): number {
  return job.plan.stages.findIndex(({ description }) => description.name === name);
}

export type LaunchDecision = Extract<Decision, { kind: 'launch' }>;

/** What the host is asked for. */
export function launchRequest(
  job: RunningJob,
  { attemptId, avoidNodes = [], zone: chosen, worker }: LaunchDecision,
): LaunchRequest {
  const { stage } = attemptParts(attemptId);
  const index = stageIndexOf(job, stage);
  const plan = job.plan.stages[index];
  const open = job.openStages.get(index);
  invariant(plan !== undefined && open !== undefined, 'a launch for a stage that is not open', { attemptId });
  const { jobId, shards } = job.plan;
  const own = taskAt(job.state, index, attemptParts(attemptId).task);
  const readBy = (id: AttemptId): Pick<AttemptPayload, 'attemptId' | 'inputs' | 'copies' | 'saved'> => {
    const { task, attempt } = attemptParts(id);
    const view = taskAt(job.state, index, task);
    const copies = copiesToRead(job.state, view, attempt);
    const saved = savedFor(view, attempt);
    const earlier = { ...(copies && { copies }), ...(saved && { saved }) };
    return { attemptId: id, inputs: spansOf(open, task), ...earlier };
  };
  const next = ridersOf(job.state, attemptId).slice(0, limits.ridersPerLaunch);
  const { kind, size } = worker ?? plan.description.worker;
  const view = stageAt(job.state, index);
  const isCloned = view.clones !== undefined;
  const attempt = job.state.attempts.get(attemptId);
  const placed = attempt === undefined ? undefined : wantedZone(view, attempt);
  const zone = kind === 'lambda' ? undefined : (chosen ?? placed);
  return {
    payload: {
      jobId,
      ...readBy(attemptId),
      shards,
      stageKey: stageKey(job.plan, stage),
      heartbeatMs: job.heartbeatMs,
      ...(job.access === undefined ? {} : { access: job.access }),
      ...(next.length === 0
        ? {}
        : {
            next: next.map(({ id }) => readBy(id)),
            nextTakesMs: nearlyAllEndMs(view),
          }),
      ...(isCloned && plan.description.output !== 'final' ? { keepOutput: true } : {}),
      ...(own.since === 0 || own.recorded === undefined ? {} : { replaces: own.recorded }),
      // A Fargate task is a node of its own, which nobody has met.
      ...(avoidNodes.length === 0 || kind === 'fargate'
        ? {}
        : {
            avoid: {
              nodes: [...avoidNodes].slice(0, limits.avoidedNodes),
              holdMs: holdMsOf(view, job.tickMs),
            },
          }),
    },
    kind,
    size,
    ...(avoidNodes.length === 0 ? {} : { avoidNodes }),
    ...(zone === undefined ? {} : { zone }),
  };
}

async function stopWorker(deps: PerformDeps, job: RunningJob, attemptId: AttemptId): Promise<void> {
  const attempt = job.state.attempts.get(attemptId);
  const worker =
    attempt === undefined
      ? undefined
      : (attempt.worker ?? job.plan.stages[attempt.stage]?.description.worker);
  if (attempt === undefined || worker === undefined) return;
  const { kind } = worker;
  const node = attempt.node ?? (kind === 'fargate' ? await recordedNode(deps, job, attemptId) : undefined);
  const wrong = await deps.launcher.stop({ kind, ...(node === undefined ? {} : { node }) });
  if (wrong !== undefined)
    deps.log.warn('worker-not-stopped', { jobId: job.plan.jobId, attemptId, node, cause: wrong });
}

/** Where an attempt runs by its record: whoever takes a job over does what was decided last before it has seen any. */
async function recordedNode(
  { attempts }: PerformDeps,
  job: RunningJob,
  attemptId: AttemptId,
): Promise<string | undefined> {
  const { attempts: records } = await attempts.read(spaceOf(job), [attemptId], 'records');
  return records.find((record) => record.attemptId === attemptId)?.node;
}

async function performOne(
  deps: PerformDeps,
  job: RunningJob,
  decision: Decision,
  now: EpochMs,
): Promise<void> {
  switch (decision.kind) {
    case 'open-stage':
      for (const manifest of job.openStages.get(decision.stage)?.manifests ?? [])
        await writeManifest(deps.objects, deps.dataBucket, manifest);
      return;
    case 'lose-output':
      await closeWinner(deps, job, decision.attemptId, now);
      return;
    case 'copy-output': // It takes its turn beside the ticks, as launches do.
    case 'clone-stage':
    case 'preempt-clones':
      return;
    case 'launch':
      return;
    case 'cancel':
      await cancel(deps, job, decision.attemptId, now);
      return;
    case 'lose':
      await lose(deps, job, decision, now);
      return;
  }
}

/**
 * A winner writes no end of its own, since its result tells of it: before another result takes that place its record
 * gets one, or it would seem to run for ever. It ended when it said so, by its own clock, and not when its output was
 * missed.
 */
async function closeWinner(
  deps: PerformDeps,
  job: RunningJob,
  attemptId: AttemptId,
  now: EpochMs,
): Promise<void> {
  const { progress, endedAt = now } = job.state.attempts.get(attemptId) ?? {};
  if (progress !== undefined)
    await deps.attempts.end(spaceOf(job), attemptId, { state: 'done', progress }, endedAt);
}

/** A cancelled Fargate worker gets the order with its next report and ends by itself, data removed. */
async function cancel(deps: PerformDeps, job: RunningJob, attemptId: AttemptId, now: EpochMs): Promise<void> {
  await job.launches?.recorded(attemptId);
  // Also one that was never launched: a scheduler that was about to launch it, and slept, finds the order.
  if (job.state.attempts.get(attemptId)?.isHeldBack === true)
    await deps.attempts.create(spaceOf(job), attemptId, now);
  await deps.attempts.orderCancel(spaceOf(job), attemptId);
  observe(job, { kind: 'cancel-ordered', attemptId, at: deps.clock.now() });
}

async function lose(
  deps: PerformDeps,
  job: RunningJob,
  { attemptId, reason }: Extract<Decision, { kind: 'lose' }>,
  now: EpochMs,
): Promise<void> {
  if (reason === 'unclaimed') {
    const outcome = await deps.attempts.markLost(spaceOf(job), attemptId, now, 'unclaimed');
    if (outcome === 'begun') observe(job, { kind: 'resumed', attemptId, at: now });
    return;
  }
  await deps.attempts.markLost(spaceOf(job), attemptId, now);
  await stopWorker(deps, job, attemptId);
}

/**
 * Carries decisions out, but for launches: manifests first, so that a worker finds all it needs. Every effect is
 * idempotent by its ids: after a crash the next scheduler performs the last tick again.
 */
export async function performDecisions(
  deps: PerformDeps,
  job: RunningJob,
  decisions: readonly Decision[],
  now: EpochMs,
): Promise<void> {
  const opens = decisions.filter(({ kind }) => kind === 'open-stage');
  await forEachBounded(opens, 1, (decision) => performOne(deps, job, decision, now));
  const others = decisions.filter(({ kind }) => kind !== 'open-stage');
  await forEachBounded(others, parallelism, (decision) => performOne(deps, job, decision, now));
}
