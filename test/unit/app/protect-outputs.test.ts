import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryCapacityStore } from '../../../src/adapters/memory/memory-capacity-store.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { type GrantContext, RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import {
  copiesMade,
  keepUndecided,
  noteTold,
  openProtection,
  protectOutputs,
  queueUnmadeCopies,
} from '../../../src/app/protect-outputs.ts';
import type { QueuedCopy } from '../../../src/app/copy-queue.ts';
import type { Session } from '../../../src/app/scheduler-session.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../../src/contracts/units.ts';
import { applyDecisions, decideTick } from '../../../src/core/decide-tick.ts';
import type { Decision, Refusal } from '../../../src/core/model/decision.ts';
import {
  applyAttempt,
  applyReplica,
  applyResult,
  createJobState,
  openStage,
} from '../../../src/core/model/job-state.ts';
import { loseOutput } from '../../../src/core/model/lost-outputs.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { attempt, attemptRecord, resultOf, tickConfig } from '../../support/job-states.ts';

const at = epochMs;
const ended = 10 * 60_000;
/** An output takes a hundredth of a second to copy, and is lost with its worker: of such a task that is worth it. */
const bytes = 1_000_000;

let state: JobState;
let session: Session;

const deps = {
  dataBucket: 'data',
  config: {},
  ledger: new RuledCapacityLedger(new MemoryCapacityStore()),
  objects: new MemoryObjectStore(),
  log: { info: (): void => undefined, warn: (): void => undefined },
};

const end = (id: string, now: number, bytesIn = 100): void => {
  applyResult(state, { ...resultOf(id, now), bytesIn, bytesOut: bytes, worker: '10.0.0.1:7843' }, at(now));
  applyAttempt(state, attemptRecord(id, 'done', now), at(now));
};

/** A job of so many maps, of which the first have ended, and a task that reads them. */
async function begin(tasks: number, done: number, bytesIn: number): Promise<void> {
  const shape = (name: string, tasks: number, upstream: readonly number[]) => ({
    ...{ name, tasks, upstream, sourceBytes: [] },
  });
  state = createJobState([shape('map', tasks, []), shape('end', 1, [0])]);
  const ids = Array.from({ length: tasks }, (_, task) => `map/${task}/0`);
  const launches = ids.map((id) => ({
    ...{ kind: 'launch' as const, attemptId: attempt(id), reason: 'first' as const },
  }));
  applyDecisions(state, [{ kind: 'open-stage', stage: 0 }, ...launches], {
    now: at(0),
    openStage: () => {
      openStage(state, 0, [], at(0));
    },
  });
  for (const id of ids) applyAttempt(state, attemptRecord(id, 'running', 1, { claimedAt: at(1) }), at(1));
  for (const id of ids.slice(0, done)) end(id, ended, bytesIn);
  const plan = { stages: [{ description: { keptTasks: tasks } }] } as unknown as Session['plan'];
  const job = {
    jobId: 'sort-0123456789ab' as JobId,
    plan,
    state,
    tickConfig: { ...tickConfig, policy: 'mantri' as const },
  };
  session = {
    ...job,
    protection: await openProtection(deps, job, at(ended)),
    copies: { size: 0 },
    overBudget: 0,
  } as unknown as Session;
}

/** A thousand outputs, of 100 bytes each read, so that there are tokens for none, that are worth a copy each. */
beforeEach(() => begin(1_001, 1_000, 100));

/** What a tick is told of outputs that are not copied, and whether it logs anything. */
async function tick(now: number, isLogged = true): Promise<readonly Refusal[]> {
  const context = { now: at(now) } as GrantContext;
  const { notCopied = [] } = await protectOutputs(deps, session, context, true);
  if (isLogged) noteTold(session, notCopied);
  state.justDone.splice(0);
  return notCopied;
}

describe('outputs that are worth a copy and wait for tokens', () => {
  it('are told of once, by the one that is dearest to lose', async () => {
    const told = await tick(ended);
    expect(told).toMatchObject([{ kind: 'refuse', taskId: 'map/0', reason: 'too-few-tokens' }]);
    expect(session.protection.waiting.size).toBe(1_000);
    expect(await tick(ended + 1_000)).toEqual([]);
    expect(session.protection.waiting.size).toBe(1_000);
  });

  it('are told of again where a dearer one has come', async () => {
    await tick(ended);
    end('map/1000/0', 2 * ended);
    expect(await tick(2 * ended)).toMatchObject([{ reason: 'too-few-tokens', facts: { redoMs: 1_200_000 } }]);
    expect(await tick(2 * ended + 1_000)).toEqual([]);
  });

  it('are told of by the next tick where one has nothing to log', async () => {
    const told = await tick(ended, false);
    expect(told).toHaveLength(1);
    expect(await tick(ended + 1_000)).toEqual(told);
    expect(await tick(ended + 2_000)).toEqual([]);
  });
});

describe('an output that is to be copied', () => {
  it.each([
    [0, 64],
    [63, 1],
    [64, 0],
    // As many may wait after a takeover: what the last entry has decided, and what was not made of those before.
    [65, 0],
    [128, 0],
  ])('is left for later where %i wait to be copied, beyond %i', async (waiting, most) => {
    await begin(301, 300, 1_000 * bytes);
    session = { ...session, copies: { size: waiting } } as unknown as Session;
    const context = { now: at(ended), totalSlots: 9, length: durationMs(60_000) };
    await deps.ledger.resize(session.jobId, 1, context);
    const { copies = [] } = await protectOutputs(deps, session, context, true);
    expect(copies).toHaveLength(most);
    expect(session.protection.waiting.size).toBe(300 - most);
  });

  it('is decided on by the next tick where the losses of many attempts fill one', async () => {
    await begin(501, 1, 1_000 * bytes);
    const context = { now: at(ended), totalSlots: 9, length: durationMs(60_000) };
    await deps.ledger.resize(session.jobId, 1, context);
    const budget = { slots: 0, cancelRequested: false };
    const config = { ...tickConfig, decisionsPerTick: 500, attemptsPerTask: 9 };
    const decided = async (): Promise<readonly Decision[]> => {
      const protecting = await protectOutputs(deps, session, context, true);
      const used = { ...budget, ...protecting };
      const { decisions } = decideTick(state, at(ended), config, used, createRng('x'));
      keepUndecided(session, protecting.copies, decisions);
      applyDecisions(state, decisions, { now: at(ended), openStage: () => undefined });
      return decisions;
    };
    expect((await decided()).filter(({ kind }) => kind === 'lose')).toHaveLength(500);
    expect(state.copied.size).toBe(0);
    expect(await decided()).toMatchObject([{ kind: 'copy-output', attemptId: 'map/0/0' }]);
    expect(await decided()).toEqual([]);
    expect(session.protection.waiting.size).toBe(0);
  });
});

describe('copies that were decided on and are not made', () => {
  const decide = (from: number, to: number) => {
    const decided = Array.from({ length: to - from }, (_, index) => ({
      ...{ kind: 'copy-output' as const, attemptId: attempt(`map/${from + index}/0`), bytes },
      ...{ reason: 'worth' as const, facts: {} },
    }));
    applyDecisions(state, decided, { now: at(ended), openStage: () => undefined });
  };
  const queuedBy = (): string[] => {
    const queued: string[] = [];
    const copies = { add: ({ of }: QueuedCopy) => queued.push(of) };
    queueUnmadeCopies(deps, { ...session, copies } as unknown as Session);
    return queued;
  };

  it('are made by whoever takes the job over, in order', () => {
    decide(0, 3);
    applyReplica(state, resultOf('map/1/1000000', ended));
    expect(queuedBy()).toEqual(['map/0/0', 'map/2/0']);
  });

  it('are the last 64, where a store that was away has failed thousands', () => {
    decide(0, 1_000);
    applyReplica(state, resultOf('map/999/1000000', ended));
    expect(queuedBy()).toEqual(Array.from({ length: 64 }, (_, index) => `map/${935 + index}/0`));
  });
});

describe('what a job has copied', () => {
  it('is what there are copies of, and not what came to nothing', () => {
    expect(copiesMade(state)).toEqual({});
    const decided = [0, 1, 2, 3].map((task) => ({
      ...{ kind: 'copy-output' as const, attemptId: attempt(`map/${task}/0`), bytes: 7 + task },
      ...{ reason: 'worth' as const, facts: {} },
    }));
    applyDecisions(state, decided, { now: at(ended), openStage: () => undefined });
    // A tenth of the 100 bytes that each of a thousand tasks has read.
    expect(copiesMade(state)).toEqual({ copies: { outputs: 0, bytes: 0, tokens: 10_000 } });
    for (const task of [0, 1, 2]) applyReplica(state, resultOf(`map/${task}/1000000`, ended));
    // The copy of one is read in its place, and that of another was lost as well.
    loseOutput(state, attempt('map/0/0'), 1_000_000);
    loseOutput(state, attempt('map/1/1000000'));
    expect(copiesMade(state)).toEqual({ copies: { outputs: 3, bytes: 24, tokens: 10_000 } });
  });
});
