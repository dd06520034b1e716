import { describe, expect, it } from 'vitest';
import { storageTiers } from '../../../../src/contracts/storage-tiers.ts';
import {
  lossOfAll,
  lossPriors,
  lossProbability,
  lossRates,
} from '../../../../src/core/policy/mantri/loss-rate.ts';
import {
  choosePrecomputed,
  isSpell,
  precomputeBudgetMs,
} from '../../../../src/core/policy/mantri/precompute.ts';
import { stallMs } from '../../../../src/core/policy/mantri/redo-time.ts';
import {
  chooseReplicas,
  lossCostMs,
  type ReplicaCandidate,
} from '../../../../src/core/policy/mantri/replicate.ts';
import { attemptIdOf } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
  taskAt,
} from '../../../../src/core/model/job-state.ts';
import { OutputValues } from '../../../../src/core/policy/mantri/outputs-at-risk.ts';
import { attemptRecord, progressOf, resultOf } from '../../../support/job-states.ts';
import { redoMs, redoTimes } from '../../../support/redo-times.ts';

/** What a standard output would be worth that takes a week to make again. */
const weekMs = 7 * 24 * 3_600_000;

describe('the time to do a task again', () => {
  it('is that of its chain, as far as that is lost', () => {
    const [first, second] = redoTimes([
      { takesMs: 10, lossProbability: 0.1, inputs: [] },
      { takesMs: 20, lossProbability: 0.2, inputs: [0] },
    ]);
    expect([first, second]).toEqual([10, 21]);
    expect(lossCostMs({ lossProbability: 0.2, redoMs: second ?? 0 })).toBeCloseTo(4.2, 12);
  });

  it('waits for the longest of many inputs that are lost', () => {
    const inputs = [10, 30, 20].map((each) => ({ redoMs: each, lossProbability: 0.1 }));
    expect(stallMs(inputs)).toBeCloseTo(5.61, 12);
    expect(redoMs(40, inputs)).toBeCloseTo(45.61, 12);
    expect(lossCostMs({ lossProbability: 0.05, redoMs: 45.61 })).toBeCloseTo(2.2805, 12);
  });

  it('is its own where nothing that it reads can be lost, or a replica is left of all of it', () => {
    expect(redoMs(7, [])).toBe(7);
    expect(redoMs(7, [{ redoMs: 1_000, lossProbability: 0 }])).toBe(7);
    const [, with1] = redoTimes([
      { takesMs: 1_000, lossProbability: lossOfAll([0.1, 0.2]), inputs: [] },
      { takesMs: 7, lossProbability: 0.1, inputs: [0] },
    ]);
    expect(with1).toBeCloseTo(27, 12);
  });

  it('gives tasks that share a list of inputs the same stall', () => {
    const all = [0, 1];
    const times = redoTimes([
      { takesMs: 5, lossProbability: 0.5, inputs: [] },
      { takesMs: 9, lossProbability: 0.5, inputs: [] },
      { takesMs: 1, lossProbability: 0.5, inputs: all },
      { takesMs: 2, lossProbability: 0.5, inputs: all },
    ]);
    expect(times).toEqual([5, 9, 6.75, 7.75]);
  });

  it('refuses a task before one that it reads', () => {
    expect(() => redoTimes([{ takesMs: 1, lossProbability: 0.1, inputs: [0] }])).toThrow('before one');
  });
});

describe('the time to do again what several attempts have done, one after the other', () => {
  it('is that of all whose work is in it: what they handed on is gone with the output', () => {
    const at = epochMs;
    const minute = 60_000;
    const state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [100] }]);
    openStage(state, 0, [], at(0));
    const ran = (number: number, [from, to]: readonly [number, number], bytesDone: number): void => {
      const id = attemptIdOf('map', 0, number);
      addAttempt(state, id, number === 0 ? 'first' : 'retry', at(from * minute));
      const takenUp = { attempt: number - 1, bytes: bytesDone };
      const record = attemptRecord(id, number === 2 ? 'done' : 'failed', to * minute, {
        ...{ launchedAt: at(from * minute), claimedAt: at(from * minute) },
        progress: { ...progressOf(100 - bytesDone, 100 - bytesDone), ...(number === 0 ? {} : { takenUp }) },
      });
      applyAttempt(state, record, at(to * minute));
    };
    ran(0, [0, 13], 0);
    ran(1, [14, 27], 45);
    ran(2, [28, 30], 90);
    applyResult(state, resultOf(attemptIdOf('map', 0, 2), 30 * minute), at(30 * minute));
    const copying = { copyLatencyMs: 100, copyBytesPerSecond: 1e8 };
    const values = new OutputValues(state, { lossOf: () => 5e-4, copyLoss: 0, copying });
    expect(values.valueOf(taskAt(state, 0, 0)).redoMs).toBe(28 * minute);
  });
});

describe('how likely an output is lost', () => {
  it('is what its tier is known for before anything is seen', () => {
    const r = storageTiers.map((tier) => lossRates(tier, new Map())('anywhere'));
    expect(r[0]).toBeCloseTo(1e-11, 22);
    expect(r[1]).toBeCloseTo(5e-4, 12);
    expect(r[2]).toBeCloseTo(0.01, 12);
  });

  it('follows what is seen at the location, and of all locations where little is', () => {
    const prior = { probability: 0.01, outputs: 20 };
    expect(lossProbability(prior, { outputs: 180, lost: 19.8 })).toBeCloseTo(0.1, 12);
    const seen = new Map([
      ['flaky', { outputs: 80, lost: 40 }],
      ['sound', { outputs: 100, lost: 0 }],
    ]);
    const r = lossRates('worker-local', seen);
    // 40.2 of 200 over all; half of 80 and none of 100 at each.
    expect(r('new')).toBeCloseTo(0.201, 12);
    expect(r('flaky')).toBeCloseTo(0.4402, 12);
    expect(r('sound')).toBeCloseTo(0.0335, 12);
  });

  it('stays next to nothing on standard storage, whatever one job has seen', () => {
    const r = lossRates('standard', new Map([['bucket', { outputs: 10_000, lost: 10_000 }]]));
    expect(r('bucket')).toBeLessThan(1e-8);
    expect(lossPriors.standard.why).toContain('99.999999999 %');
  });
});

const candidate = (given: Partial<ReplicaCandidate> & { readonly name: string }) => ({
  ...{ lossProbability: 0.1, copyLossProbability: 0.1, redoMs: 1_000, copyMs: 50, bytes: 10 },
  ...given,
});
const names = (list: readonly { readonly name: string }[]): string => list.map(({ name }) => name).join(' ');

describe('which outputs are kept twice', () => {
  it('are those whose loss costs more than the copy', () => {
    const { chosen, declined, tokens } = chooseReplicas(
      [
        candidate({ name: 'worth', redoMs: 501 }),
        candidate({ name: 'even', redoMs: 500 }),
        candidate({ name: 'dear', copyMs: 101 }),
      ],
      100,
    );
    expect(names(chosen)).toBe('worth');
    expect(declined.map(({ candidate: { name }, reason }) => [name, reason])).toEqual([
      ['even', 'not-worth-it'],
      ['dear', 'not-worth-it'],
    ]);
    expect(tokens).toBe(90);
  });

  it('cost least for what they save first, while there are tokens for all their bytes', () => {
    const { chosen, declined, tokens } = chooseReplicas(
      [
        candidate({ name: 'third', redoMs: 600 }),
        candidate({ name: 'second', redoMs: 900, bytes: 50 }),
        candidate({ name: 'first', lossProbability: 0.5 }),
        candidate({ name: 'copy-is-lost-too', lossProbability: 0.5, copyLossProbability: 0.9 }),
      ],
      35,
    );
    expect(names(chosen)).toBe('first third copy-is-lost-too');
    expect(declined.map(({ candidate: { name }, ...why }) => ({ name, ...why }))).toEqual([
      { name: 'second', reason: 'too-few-tokens', tokens: 25 },
    ]);
    expect(tokens).toBe(5);
  });

  it('are none on standard storage, though they took a week to make', () => {
    const r = lossRates('standard', new Map())('bucket');
    const week = candidate({ name: 'a', lossProbability: r, redoMs: weekMs, copyMs: 1 });
    expect(chooseReplicas([week], 1e12).chosen).toEqual([]);
  });
});

describe('what is made again ahead of a loss', () => {
  it('is at a location where one was just lost, or two in quick succession', () => {
    const [one, two] = [
      { losses: 1, withinMs: 100 },
      { losses: 2, withinMs: 100 },
    ];
    expect(isSpell([], 1_000, one)).toBe(false);
    expect(isSpell([900], 1_000, one)).toBe(true);
    expect(isSpell([899], 1_000, one)).toBe(false);
    expect(isSpell([1_001], 1_000, one)).toBe(false);
    expect(isSpell([950], 1_000, two)).toBe(false);
    expect(isSpell([990, 950], 1_000, two)).toBe(true);
    expect(isSpell([990, 880], 1_000, two)).toBe(false);
  });

  it('is what spares most for its slot time, within the budget', () => {
    expect(precomputeBudgetMs(0.05, 10_000, 100)).toBe(400);
    expect(precomputeBudgetMs(0.05, 10_000, 600)).toBe(0);
    const { chosen, declined, leftMs } = choosePrecomputed(
      [
        { name: 'short', takesMs: 100, redoMs: 100 },
        { name: 'long', takesMs: 300, redoMs: 300 },
        { name: 'deep', takesMs: 100, redoMs: 250 },
      ],
      250,
    );
    expect(names(chosen)).toBe('deep short');
    expect(declined.map(({ candidate: { name }, reason, leftMs: left }) => [name, reason, left])).toEqual([
      ['long', 'precompute-budget', 50],
    ]);
    expect(leftMs).toBe(50);
  });
});
