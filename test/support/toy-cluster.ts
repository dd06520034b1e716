import { attemptParts } from '../../src/contracts/ids.ts';
import type { AttemptId } from '../../src/contracts/ids.ts';
import { type PolicyConfigInput, policyConfigSchema } from '../../src/contracts/policy-config.ts';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import { applyDecisions, decideTick, type TickDecision } from '../../src/core/decide-tick.ts';
import {
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
  withdrawAttempt,
} from '../../src/core/model/job-state.ts';
import type { TickBudget, TickConfig } from '../../src/core/model/tick-config.ts';
import { createRng } from '../../src/lib/rng.ts';
import { attemptRecord, resultOf } from './job-states.ts';
import type { JobState, LaunchOrder } from '../../src/core/model/job-view.ts';

/** One stage on nodes with slots, in fixed steps of time: enough to follow the papers' examples by hand. */
export interface Toy {
  readonly policy: PolicyName;
  readonly config?: PolicyConfigInput;
  readonly launchOrder?: LaunchOrder;
  readonly inputBytes: readonly number[];
  /** Node of each slot: a node with two slots is named twice. Earlier ones are taken first. */
  readonly slots: readonly string[];
  readonly durationMs: (attempt: { task: number; attempt: number; node: string }) => number;
  readonly stepMs: number;
  readonly maxSteps: number;
  /** Sees each tick before its decisions take effect. */
  readonly onTick?: (tick: {
    state: JobState;
    now: number;
    config: TickConfig;
    budget: TickBudget;
    decided: TickDecision;
  }) => void;
}

export interface ToyOutcome {
  readonly endMs: number | undefined;
  readonly slotMs: number;
  /** Copies as `task/number reason node at`, in order. */
  readonly copies: readonly string[];
}

interface Run {
  readonly id: AttemptId;
  readonly slot: number;
  readonly startMs: number;
  readonly lengthMs: number;
}

/** Runs a job of one stage to its end, or for `maxSteps`. Kills free their slot at once; a launch starts at once. */
export function runToy(toy: Toy): ToyOutcome {
  const shape = { name: 'map', tasks: toy.inputBytes.length, upstream: [], sourceBytes: toy.inputBytes };
  const state = createJobState([shape], toy.launchOrder ?? 'by-index');
  openStage(state, 0, [], epochMs(0));
  const config: TickConfig = {
    claimLeaseMs: durationMs(1e9),
    silenceMs: durationMs(1e9),
    attemptsPerTask: 4,
    retryBaseMs: durationMs(0),
    retryCeilingMs: durationMs(0),
    drainMs: durationMs(1e9),
    decisionsPerTick: 1_000,
    policy: toy.policy,
    policyConfig: policyConfigSchema.parse(toy.config ?? {}),
    killFreesSlot: true,
  };
  const running = new Map<AttemptId, Run>();
  const copies: string[] = [];
  let slotMs = 0;
  const free = (): number[] =>
    toy.slots.flatMap((_, slot) => ([...running.values()].some((run) => run.slot === slot) ? [] : [slot]));
  const freeNodes = (): ReadonlyMap<string, number> => {
    const slots = new Map<string, number>();
    for (const slot of free()) {
      const node = toy.slots[slot] ?? '';
      slots.set(node, (slots.get(node) ?? 0) + 1);
    }
    return slots;
  };
  const stop = (run: Run, how: 'done' | 'cancelled', now: number): void => {
    running.delete(run.id);
    slotMs += now - run.startMs;
    const node = toy.slots[run.slot] ?? '';
    applyAttempt(
      state,
      attemptRecord(run.id, how, now, { claimedAt: epochMs(run.startMs), node }),
      epochMs(now),
    );
  };
  const report = (run: Run, now: number): void => {
    const bytes = toy.inputBytes[attemptParts(run.id).task] ?? 0;
    const progress = {
      bytesRead: Math.floor((bytes * (now - run.startMs)) / run.lengthMs),
      bytesTotal: bytes,
      recordsIn: 0,
      recordsOut: 0,
      phase: 'compute' as const,
      phaseMs: { init: 0, read: 0, compute: now - run.startMs, write: 0 },
      peakMemoryBytes: 0,
    };
    const node = toy.slots[run.slot] ?? '';
    applyAttempt(
      state,
      attemptRecord(run.id, 'running', now, { claimedAt: epochMs(run.startMs), node, progress }),
      epochMs(now),
    );
  };
  const start = (id: AttemptId, avoid: readonly string[], now: number): void => {
    const { task, attempt } = attemptParts(id);
    const slot = free().find((each) => !avoid.includes(toy.slots[each] ?? ''));
    const node = toy.slots[slot ?? -1];
    if (slot === undefined || node === undefined) {
      withdrawAttempt(state, id, epochMs(now + toy.stepMs));
      return;
    }
    const run = {
      id,
      slot,
      startMs: now,
      lengthMs: Math.max(toy.stepMs, toy.durationMs({ task, attempt, node })),
    };
    running.set(id, run);
    const reason = state.attempts.get(id)?.reason;
    if (reason !== 'first') copies.push(`${task}/${attempt} ${reason ?? ''} ${node} ${now}`);
    report(run, now);
  };
  for (let step = 0; step < toy.maxSteps; step++) {
    const now = step * toy.stepMs;
    for (const run of [...running.values()]) {
      if (run.startMs + run.lengthMs > now) {
        report(run, now);
        continue;
      }
      const { task } = attemptParts(run.id);
      if (state.stages[0]?.tasks[task]?.result === undefined)
        applyResult(state, resultOf(run.id, now), epochMs(now));
      stop(run, 'done', now);
    }
    const budget = {
      slots: toy.slots.length,
      cancelRequested: false,
      freeNodes: freeNodes(),
    };
    const decided = decideTick(state, epochMs(now), config, budget, createRng('toy'));
    toy.onTick?.({ state, now, config, budget, decided });
    applyDecisions(state, decided.decisions, { now: epochMs(now), openStage: () => undefined });
    for (const decision of decided.decisions) {
      const run = decision.kind === 'cancel' ? running.get(decision.attemptId) : undefined;
      if (run !== undefined) stop(run, 'cancelled', now);
    }
    for (const decision of decided.decisions) {
      if (decision.kind === 'launch') start(decision.attemptId, decision.avoidNodes ?? [], now);
    }
    if (decided.outcome.kind === 'finish' || (state.doneAt !== undefined && running.size === 0)) {
      return { endMs: state.doneAt, slotMs, copies };
    }
  }
  return { endMs: undefined, slotMs, copies };
}
