import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { type Holding, type Ledger, moved } from '../../../../src/core/capacity/ledger.ts';
import { earnedTokens, spendTokens, tokensStated } from '../../../../src/core/capacity/replication-tokens.ts';
import { addAttempt, applyResult, createJobState, openStage } from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import { loseOutput } from '../../../../src/core/model/lost-outputs.ts';
import { attempt, resultOf } from '../../../support/job-states.ts';

const jobId = 'a-000000000000' as JobId;
const ledgerOf = (tokens: number | undefined): Ledger => ({
  totalSlots: 100,
  holdings: new Map<JobId, Holding>([
    [jobId, { wanted: 9, weight: 1, since: epochMs(0), beat: 1, epoch: 3, slots: 9, held: 9, tokens }],
  ]),
});
const asking = (spent: number, earned: number, epoch = 3) => ({
  ...{ jobId, epoch, earned, spent, totalSlots: 100 },
});
const stateOf = (...stages: readonly (number | undefined)[][]): Pick<JobState, 'stages'> =>
  ({
    stages: stages.map((bytes) => ({
      tasks: bytes.map((bytesIn) => ({
        ...{ inputBytes: 0, lostOutputs: [] },
        ...(bytesIn === undefined ? {} : { result: { bytesIn } }),
      })),
    })),
  }) as unknown as JobState;

describe('replication tokens', () => {
  it('are earned by finished tasks, a tenth of what they have read', () => {
    expect(earnedTokens(stateOf())).toBe(0);
    expect(earnedTokens(stateOf([undefined, undefined]))).toBe(0);
    // 1,000 MB processed: 100 MB of tokens (Mantri §5.3).
    expect(earnedTokens(stateOf([600e6, undefined], [400e6]))).toBe(100e6);
    expect(earnedTokens(stateOf([19]))).toBe(1);
  });

  it('stay earned where an output is lost, and are earned again by whoever makes it again', () => {
    const at = epochMs;
    const state = createJobState([
      { name: 'map', tasks: 1, upstream: [], sourceBytes: [100] },
      { name: 'reduce', tasks: 1, upstream: [0], sourceBytes: [0] },
    ]);
    openStage(state, 0, [], at(0));
    addAttempt(state, attempt('map/0/0'), 'first', at(0));
    expect(earnedTokens(state)).toBe(0);
    applyResult(state, resultOf('map/0/0', 5), at(5));
    expect(earnedTokens(state)).toBe(10);
    loseOutput(state, attempt('map/0/0'));
    expect(earnedTokens(state)).toBe(10);
    addAttempt(state, attempt('map/0/1'), 'recompute', at(6));
    expect(earnedTokens(state)).toBe(10);
    applyResult(state, resultOf('map/0/1', 9), at(9));
    expect(earnedTokens(state)).toBe(20);
  });

  it.each([
    ['what is earned is spent, to the last', undefined, 100, 100, 100],
    ['one byte more is not, nor a part of it', undefined, 101, 100, 0],
    ['with what was spent before', 60, 100, 100, 100],
    ['too few are left', 60, 101, 100, 60],
    ['asked again it is charged once', 100, 100, 100, 100],
    ['asked late, for less, it gives nothing back', 100, 40, 100, 100],
  ])('%s', (_, before, spent, earned, expected) => {
    const ledger = ledgerOf(before);
    const move = spendTokens(ledger, asking(spent, earned));
    expect(move.answer).toBe(expected);
    expect(moved(ledger, move).holdings.get(jobId)?.tokens ?? 0).toBe(expected);
  });

  it('are spent by no scheduler that was replaced, and by no job that is not in the ledger', () => {
    expect(spendTokens(ledgerOf(5), asking(10, 100, 2))).toMatchObject({ answer: 0, changes: new Map() });
    expect(spendTokens({ totalSlots: 9, holdings: new Map() }, asking(10, 100)).answer).toBe(0);
  });

  it('are there again where they were admitted and their replica was never decided on', () => {
    expect(tokensStated(90, 40)).toBe(40);
    // It was struck out, and comes back with what it has spent.
    expect(tokensStated(undefined, 40)).toBe(40);
    expect(tokensStated(undefined, 0)).toBeUndefined();
    expect(tokensStated(90, undefined)).toBe(90);
  });
});
