import type { ExplainedCause } from '../../contracts/explanation.ts';
import { type Phase, phases } from '../../contracts/progress.ts';
import type { AttemptRun } from './attempt-runs.ts';
import {
  evidenceOf,
  isOwnWork,
  isSlowBesideItsLike,
  type PhaseRatios,
  type PhasesBeside,
  slowFactor,
  type Witnesses,
} from './node-evidence.ts';
import { expectedMs, isMoreByRecords, mapPhases, slownessOf, type Usual } from './usual-run.ts';

/** Slowness up to this factor over what its input explains is explained by it. As `explainedFactor` of policies. */
const explainedFactor = 1.2;
/** One phase is at fault where so much of the time beyond the usual went to it. */
const phaseShare = 0.6;

/** Less computing than that tells nothing of a processor: it fits between two of the stops that make one slow. */
const leastComputeMs = 20;

const phaseCauses = {
  init: 'slow-start',
  read: 'slow-read',
  compute: 'slow-compute',
  write: 'slow-write',
} as const satisfies Record<Phase, ExplainedCause['kind']>;

/** What the phases of an attempt took beyond the usual for as much as it read. */
interface Excess {
  readonly ms: Readonly<Record<Phase, number>>;
  /** What they usually take for as much. */
  readonly usualMs: Readonly<Record<Phase, number>>;
  readonly sumMs: number;
  readonly beside: PhasesBeside;
}

type PhaseTimes = Readonly<Record<Phase, number>>;

const sumOf = (of: PhaseTimes, from: readonly Phase[]): number =>
  from.reduce((total, phase) => total + of[phase], 0);

function ratiosOf(took: PhaseTimes, known: PhaseTimes): PhaseRatios | undefined {
  const rest = ['read', 'compute', 'write'] as const;
  const knownRestMs = sumOf(known, rest);
  if (known.init <= 0 || knownRestMs <= 0) return undefined;
  return {
    start: took.init / known.init,
    rest: sumOf(took, rest) / knownRestMs,
    ...(known.compute < leastComputeMs ? {} : { compute: took.compute / known.compute }),
  };
}

function excessOf(
  { phaseMs, readShare = 1 }: AttemptRun,
  usual: Usual,
  { inputFactor, witnesses: { firstMs } }: Judged,
): Excess {
  if (phaseMs === undefined) {
    const none = mapPhases(() => 0);
    return { ms: none, usualMs: none, sumMs: 0, beside: { usual: undefined } };
  }
  // Its start does not depend on what it reads.
  const share = (phase: Phase): number => (phase === 'init' ? 1 : inputFactor * readShare);
  const scaled = (of: PhaseTimes): PhaseTimes => mapPhases((phase) => of[phase] * share(phase));
  const usualMs = scaled(usual.phaseMs);
  const ms = mapPhases((phase) => Math.max(0, phaseMs[phase] - usualMs[phase]));
  const firsts = firstMs === undefined ? undefined : ratiosOf(phaseMs, scaled(firstMs));
  const beside = { usual: ratiosOf(phaseMs, usualMs), ...(firsts === undefined ? {} : { firsts }) };
  return { ms, usualMs, sumMs: sumOf(ms, phases), beside };
}

/** The phase that most of the time beyond the usual went to; undefined where it is spread, or in none of them. */
function phaseAtFault({ ms, sumMs }: Excess, beyondMs: number): Phase | undefined {
  return phases.find((phase) => sumMs > 0 && ms[phase] >= phaseShare * Math.max(sumMs, beyondMs));
}

const finite = (facts: Readonly<Record<string, number | undefined>>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(facts).filter(
      (each): each is [string, number] => each[1] !== undefined && Number.isFinite(each[1]),
    ),
  );

/**
 * Why an attempt took longer than is usual in its stage; empty where it did not, or nobody can say what is usual. More
 * input comes first, with what it explains; one other cause for what is left.
 *
 * The order of the rules: input explains what it can. A worker that stood still for most of the rest has said so
 * itself; but one that is slowed down much stops so often that it takes that for standing still, and is told from it by
 * that all of its phases took long beside its like, or all together where other tasks were slow as well. What the same task took elsewhere tells the task from its place. Then comes what shows the node; then the one
 * phase that the time went to; and where nothing does, it says so.
 *
 * Source: Mantri §4 for input and place; the phases are ours.
 *
 * @param findWitnesses - asked only of an attempt that was slow beyond its input: of a wide job, to find them for each takes long.
 */
export function causesOfSlowness(
  run: AttemptRun,
  usual: Usual | undefined,
  findWitnesses: () => Witnesses,
): readonly ExplainedCause[] {
  const { seenMs: runMs, bytes, attempt } = run;
  const slowness = slownessOf(run, usual);
  if (usual === undefined || runMs === undefined || slowness === undefined) return [];
  const inputMs = expectedMs(usual, run);
  const inputFactor = usual.runMs <= 0 ? 1 : inputMs / usual.runMs;
  if (slowness * inputFactor <= slowFactor) return [];
  const { attemptId } = attempt;
  const isExplained = slowness <= explainedFactor;
  const more: readonly ExplainedCause[] =
    inputFactor <= 1
      ? []
      : [
          {
            kind: 'more-input',
            ms: Math.max(0, (isExplained ? runMs : Math.min(runMs, inputMs)) - usual.runMs),
            attemptId,
            facts: finite({
              bytes,
              usualBytes: usual.bytes,
              ...(isMoreByRecords(run, usual) ? { records: run.records, usualRecords: usual.records } : {}),
              runMs,
              usualMs: usual.runMs,
              expectedMs: inputMs,
            }),
          },
        ];
  if (isExplained) return more;
  return [...more, restOf(run, usual, { witnesses: findWitnesses(), slowness, inputFactor })];
}

interface Judged {
  readonly witnesses: Witnesses;
  readonly slowness: number;
  readonly inputFactor: number;
}

/** Less is lost to what else a machine does just then, and no node is blamed for it. */
const leastNodeMs = 300;

/** The cause of what its input does not explain. */
function restOf(run: AttemptRun, usual: Usual, judged: Judged): ExplainedCause {
  const { witnesses, slowness, inputFactor } = judged;
  const { attempt, seenMs: runMs = 0, reportedMs = runMs, isFinished, readShare = 1 } = run;
  const excess = excessOf(run, usual, judged);
  const { beside } = excess;
  const evidence = evidenceOf(beside, witnesses);
  const expected = usual.runMs * inputFactor;
  const startMs = Math.min(expected, usual.phaseMs.init);
  // Beyond its start and what it had read by its last report, or beyond all of it by now.
  const beyondMs = Math.max(0, reportedMs - startMs - (expected - startMs) * readShare, runMs - expected);
  const phase = phaseAtFault(excess, beyondMs);
  const head = {
    ms: beyondMs,
    attemptId: attempt.attemptId,
    ...(attempt.node === undefined ? {} : { node: attempt.node }),
  };
  const facts = finite({
    slowness,
    runMs,
    usualMs: usual.runMs,
    expectedMs: expected,
    startFactor: beside.usual?.start,
    restFactor: beside.usual?.rest,
    // Where nothing but these shows the node.
    ...(isSlowBesideItsLike(beside, false)
      ? {}
      : { firstStartFactor: beside.firsts?.start, firstRestFactor: beside.firsts?.rest }),
    otherTasks: witnesses.othersCount,
    otherTasksSlowness: witnesses.others,
    elsewhereSlowness: witnesses.elsewhere,
    ...(isFinished || run.readShare === undefined
      ? {}
      : { readShare, ...(reportedMs < runMs ? { reportedMs } : {}) }),
  });
  const stalledMs = attempt.progress?.stalledMs ?? 0;
  const isSlowed =
    (evidence.includes('every-phase') && isSlowBesideItsLike(beside, run.isWarm === false)) ||
    (evidence.includes('other-tasks') && phase === undefined);
  if (stalledMs > 0 && stalledMs >= phaseShare * head.ms && !isSlowed)
    return { kind: 'stood-still', ...head, facts: { ...facts, stalledMs } };
  if (isOwnWork(witnesses, slowness)) return { kind: 'own-work', ...head, facts };
  // One phase alone that waits for storage is told by its name, whatever other attempts were slow: storage can be slow
  // for a while, for several of one node, too, and a slow processor slows down all phases.
  const isStorage = phase !== undefined && phase !== 'compute';
  const isPlace =
    beyondMs >= leastNodeMs && (evidence.includes('every-phase') || (evidence.length > 0 && !isStorage));
  if (isPlace) return { kind: 'slow-node', ...head, evidence: [...evidence], facts };
  if (phase === undefined) return { kind: 'unexplained', ...head, facts };
  return {
    kind: phaseCauses[phase],
    ...head,
    facts: { ...facts, phaseMs: attempt.progress?.phaseMs[phase] ?? 0, usualPhaseMs: excess.usualMs[phase] },
  };
}
