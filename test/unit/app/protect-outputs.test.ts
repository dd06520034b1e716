import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryCapacityStore } from '../../../src/adapters/memory/memory-capacity-store.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { type GrantContext, RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { noteTold, openProtection, protectOutputs } from '../../../src/app/protect-outputs.ts';
import type { Session } from '../../../src/app/scheduler-session.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { applyDecisions } from '../../../src/core/decide-tick.ts';
import type { Refusal } from '../../../src/core/model/decision.ts';
import { applyAttempt, applyResult, createJobState, openStage } from '../../../src/core/model/job-state.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
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

const end = (id: string, now: number): void => {
  applyResult(state, { ...resultOf(id, now), bytesOut: bytes, worker: '10.0.0.1:7843' }, at(now));
  applyAttempt(state, attemptRecord(id, 'done', now), at(now));
};

/** A thousand outputs, of 100 bytes each read, so that there are tokens for none, that are worth a copy each. */
beforeEach(async () => {
  const shape = (name: string, tasks: number, upstream: readonly number[]) => ({
    ...{ name, tasks, upstream, sourceBytes: [] },
  });
  state = createJobState([shape('map', 1_001, []), shape('end', 1, [0])]);
  const ids = Array.from({ length: 1_001 }, (_, task) => `map/${task}/0`);
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
  for (const id of ids.slice(0, 1_000)) end(id, ended);
  const plan = { stages: [{ description: { keptTasks: 1_001 } }] } as unknown as Session['plan'];
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
});

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
