import { type AttemptId, attemptParts, taskIdOf, taskOf } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import type { TickDecision } from '../core/decide-tick.ts';
import { isLive } from '../core/model/job-view.ts';
import type { Decision, LoseOutput, Refusal, TaskPlacement } from '../core/model/decision.ts';
import { stageAt } from '../core/model/job-state.ts';
import type { BlockedNode } from '../core/model/node-book.ts';
import { taskWithOutput } from '../core/model/lost-outputs.ts';
import type { Log } from '../ports/log.ts';
import type { Session } from './scheduler-session.ts';

/** First launches of one tick that are told one by one; more of a stage are told together. */
const launchesTold = 20;

type Launch = Extract<Decision, { kind: 'launch' }>;

/**
 * Tells the log, which people read, what a tick has decided and what it has refused, with the numbers that decided it. A
 * refusal is told once for each task and reason, since most are repeated with every tick; of a copy apart from what is owed.
 *
 * @param blocked - nodes of the book, of which is told why, once, as a launch names them.
 */
export function logDecisions(
  log: Log,
  session: Session,
  { decisions, refusals }: Pick<TickDecision, 'decisions' | 'refusals'>,
  blocked: readonly BlockedNode[] = [],
): void {
  logAvoided(log, session, decisions, blocked);
  const first = decisions.filter(isFirstLaunch);
  for (const decision of decisions)
    if (first.length <= launchesTold || !isFirstLaunch(decision)) logDecision(log, session, decision);
  if (first.length > launchesTold) {
    const again = first.filter((each) => rodeBehind(session, each) !== undefined);
    logTogether(log, session, { event: 'launched', of: first.filter((each) => !again.includes(each)) });
    logTogether(log, session, { event: 'launched-alone', of: again });
  }
  for (const refusal of refusals) logRefusal(log, session, refusal);
}

function logAvoided(
  log: Log,
  { jobId, toldNodes }: Session,
  decisions: readonly Decision[],
  blocked: readonly BlockedNode[],
): void {
  const untold = blocked.filter(({ node }) => !toldNodes.has(node));
  if (untold.length === 0) return;
  const named = new Set(decisions.flatMap((each) => (each.kind === 'launch' ? (each.avoidNodes ?? []) : [])));
  for (const { node, reason, slowdown, attempts } of untold) {
    if (!named.has(node) || toldNodes.size >= limits.refusalsTold) continue;
    toldNodes.add(node);
    // How slow one is on which nothing went well is made up.
    log.info('node-avoided', { jobId, node, reason, ...(reason === 'slow' ? { slowdown } : {}), attempts });
  }
}

const isFirstLaunch = (decision: Decision): decision is Launch =>
  decision.kind === 'launch' && decision.reason === 'first';

/** With whom an attempt was to ride that is launched by itself now; undefined of one that was not decided on before. */
const rodeBehind = ({ state }: Session, { attemptId, behind }: Launch): AttemptId | undefined =>
  behind === undefined ? state.attempts.get(attemptId)?.behind : undefined;

const workerText = (worker: Launch['worker']): string =>
  worker === undefined ? '' : `${worker.kind} ${worker.size}`;

function logTogether(
  log: Log,
  { jobId }: Session,
  { event, of }: { readonly event: 'launched' | 'launched-alone'; readonly of: readonly Launch[] },
): void {
  const alike = Map.groupBy(of, ({ attemptId, worker, zone = '' }) =>
    JSON.stringify([attemptParts(attemptId).stage, workerText(worker), zone]),
  );
  for (const launches of alike.values()) {
    const [first] = launches;
    if (first === undefined) continue;
    const { attemptId: from, worker, zone, facts } = first;
    const riding = launches.filter(({ behind }) => behind !== undefined).length;
    log.info(event, {
      jobId,
      stage: attemptParts(from).stage,
      reason: 'first',
      attempts: launches.length,
      ...(riding === 0 ? {} : { riding }),
      ...(worker === undefined ? {} : { worker: workerText(worker) }),
      ...(zone === undefined ? {} : { zone }),
      from,
      to: launches.at(-1)?.attemptId,
      // Those of the first: where workers or zones are chosen, they tell why.
      ...facts,
    });
  }
}

function logLaunch(log: Log, session: Session, launch: Launch): void {
  const { attemptId, reason, behind, worker, avoidNodes, zone, facts } = launch;
  const rode = rodeBehind(session, launch);
  log.info(rode === undefined ? 'launched' : 'launched-alone', {
    jobId: session.jobId,
    attemptId,
    reason,
    ...(behind === undefined ? {} : { behind }),
    ...(rode === undefined ? {} : { rodeBehind: rode }),
    ...(worker === undefined ? {} : { worker: workerText(worker) }),
    ...(avoidNodes === undefined ? {} : { avoidNodes }),
    ...(zone === undefined ? {} : { zone }),
    ...facts,
  });
}

function logOpening(
  log: Log,
  jobId: Session['jobId'],
  stage: string,
  { revision, splits = [], placement }: Extract<Decision, { kind: 'open-stage' }>,
): void {
  if (revision === undefined) log.info('stage-opened', { jobId, stage });
  else log.info('inputs-renewed', { jobId, stage, times: revision });
  for (const { task, cuts, facts } of splits)
    log.info('partition-split', { jobId, taskId: taskIdOf(stage, task), parts: cuts.length + 1, ...facts });
  if (placement !== undefined)
    log.info('stage-placed', { jobId, stage, zones: tasksByZone(placement), ...placement.facts });
}

/** How many tasks go to which zone, `3 us-east-1a, 1 us-east-1c`. */
function tasksByZone({ zones, tasks }: TaskPlacement): string {
  const counts = zones.map(() => 0);
  for (const zone of tasks) counts[zone] = (counts[zone] ?? 0) + 1;
  return zones.flatMap((zone, at) => (counts[at] === 0 ? [] : [`${String(counts[at])} ${zone}`])).join(', ');
}

function logDecision(log: Log, session: Session, decision: Decision): void {
  const { jobId, state } = session;
  const stageName = (place: number): string => stageAt(state, place).shape.name;
  switch (decision.kind) {
    case 'open-stage':
      logOpening(log, jobId, stageName(decision.stage), decision);
      return;
    case 'lose-output':
      logLoss(log, session, decision);
      return;
    case 'copy-output':
      log.info('copied', {
        jobId,
        attemptId: decision.attemptId,
        reason: decision.reason,
        ...decision.facts,
      });
      return;
    case 'clone-stage':
    case 'preempt-clones':
      log.info(decision.kind === 'clone-stage' ? 'cloned' : 'clones-preempted', {
        jobId,
        stage: stageName(decision.stage),
        ...decision.facts,
      });
      return;
    case 'allocate':
      log.info('allocated', {
        jobId,
        slots: decision.slots,
        reason: decision.reason,
        ...decision.facts,
      });
      return;
    case 'launch':
      logLaunch(log, session, decision);
      return;
    case 'cancel':
      log.info('told-to-stop', {
        jobId,
        attemptId: decision.attemptId,
        reason: decision.reason,
        ...decision.facts,
      });
      return;
    case 'lose':
      log.warn('given-up', { jobId, attemptId: decision.attemptId, reason: decision.reason });
  }
}

/** Whose output is gone, who found that, and what is done about it: another copy is read, or the task is done again. */
function logLoss(log: Log, { jobId, state }: Session, { attemptId, how, by, use }: LoseOutput): void {
  const isRead = taskWithOutput(state, attemptId)?.result?.attemptId === attemptId;
  log.warn('output-lost', {
    jobId,
    attemptId,
    how,
    ...(by === undefined ? {} : { foundBy: by }),
    ...(use === undefined ? { recomputed: isRead } : { readInstead: `${taskOf(attemptId)}/${use}` }),
  });
}

/** Why a slow task is left alone, which nobody had proposed to do anything about. */
const isLeftAlone: ReadonlySet<Refusal['reason']> = new Set(['not-worth-it', 'recent-copy', 'restart-limit']);

/** Why a task gets no attempt that it is owed, as well as no copy: either is told. */
const isOfOwed: ReadonlySet<Refusal['reason']> = new Set(['no-slot', 'budget']);

/** Under what a refusal is told once: that of a copy, which is of a task at work, is another. */
function toldAs({ state }: Session, { taskId, reason }: Refusal): string {
  if (!isOfOwed.has(reason)) return reason;
  const [stage = '', task] = taskId.split('/');
  const tasks = state.stages.find(({ shape }) => shape.name === stage)?.tasks;
  const isAtWork = tasks?.[Number(task)]?.attempts.some(isLive) === true;
  return isAtWork ? `${reason} of a copy` : reason;
}

function logRefusal(log: Log, session: Session, refusal: Refusal): void {
  const { jobId, toldRefusals } = session;
  const { taskId, reason, zone, facts } = refusal;
  const told = toldRefusals.get(taskId) ?? new Set();
  // Those that are left alone are many, and leave half of the room to others.
  const most = isLeftAlone.has(reason) ? limits.refusalsTold / 2 : limits.refusalsTold;
  const as = toldAs(session, refusal);
  if (told.has(as) || (told.size === 0 && toldRefusals.size >= most)) return;
  toldRefusals.set(taskId, told.add(as));
  const where = zone === undefined ? {} : { zone };
  log.info(refusedAs(reason), { jobId, task: taskId, reason, ...where, ...facts });
}

/** What a refusal is called that is of a whole stage. */
function refusedAs(reason: Refusal['reason']): 'refused' | 'not-cloned' | 'not-copied' {
  switch (reason) {
    case 'clone-budget':
    case 'utilization':
    case 'unmeasured':
    case 'deadline-slack':
      return 'not-cloned';
    case 'replica-not-worth-it':
    case 'too-few-tokens':
    case 'precompute-budget':
      return 'not-copied';
    default:
      return 'refused';
  }
}
