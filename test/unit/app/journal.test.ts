import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryJournalStore } from '../../../src/adapters/memory/memory-journal-store.ts';
import { Journal, observe } from '../../../src/app/journal.ts';
import { replayJob } from '../../../src/app/replay-job.ts';
import { UnreadableRecordError } from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { limits } from '../../../src/contracts/limits.ts';
import { durationMs, type EpochMs, epochMs, later } from '../../../src/contracts/units.ts';
import { opened } from '../../../src/app/commit-decisions.ts';
import { applyDecisions, decideTick, type TickDecision } from '../../../src/core/decide-tick.ts';
import { createJobState, openStage } from '../../../src/core/model/job-state.ts';
import { decodeLine, encodeLine, type JournalLine, lean } from '../../../src/core/replay/journal-lines.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { attemptRecord, resultOf } from '../../support/job-states.ts';
import type { JournalPiece, JournalStore } from '../../../src/ports/journal-store.ts';

const jobId = 'words-0123456789ab' as JobId;
const now = epochMs(1_700_000_000_000);
const warned: string[] = [];
const log = { info: (): void => undefined, warn: (event: string): unknown => warned.push(event) };

/** A store of which some writes fail, and whose writes are counted. */
class Store implements JournalStore {
  readonly inner = new MemoryJournalStore();
  writes = 0;
  readonly isFull: boolean;
  constructor(isFull = false) {
    this.isFull = isFull;
  }
  append(id: JobId, piece: JournalPiece): Promise<void> {
    this.writes += 1;
    return this.isFull ? Promise.reject(new Error('full')) : this.inner.append(id, piece);
  }
  page: JournalStore['page'] = (...where) => this.inner.page(...where);
}

async function textIn(store: Store): Promise<string> {
  const texts: string[] = [];
  for (let after: JournalPiece | undefined; ;) {
    const { pieces, isLast } = await store.page(jobId, after);
    texts.push(...pieces.map(({ text }) => text));
    after = pieces.at(-1);
    if (isLast) return texts.join('');
  }
}

const held = (index: number): JournalLine => ({ kind: 'held', attemptId: `map/${index}/0` as never });
const open = (store: JournalStore): Journal => new Journal({ store, log }, { jobId, epoch: 3, now });

/** A journal of one stage of two tasks: it is opened, and one attempt of each task is decided on. */
const decided = (attempts: readonly string[]): string =>
  JSON.stringify(attempts.map((attemptId) => ({ kind: 'launch', attemptId, reason: 'first' })));
const config = {
  ...{ policy: 'none', policyConfig: {}, killFreesSlot: false, claimLeaseMs: 1_000, silenceMs: 1_000 },
  ...{ attemptsPerTask: 4, retryBaseMs: 1, retryCeilingMs: 1, drainMs: 1, decisionsPerTick: 10 },
};
const session = {
  ...{ kind: 'session', format: 1, jobId, epoch: 1, at: now, launchOrder: 'by-index', config },
  shapes: [{ name: 'map', tasks: 2, upstream: [], sourceBytes: [1, 1] }],
};
/** A vCPU and 2 GB. */
const worker = { kind: 'fargate', size: 'small' } as const;
const tick = (at: number, version: number, text: string, more: object = {}): unknown => ({
  ...{ kind: 'tick', at, version, decided: text, budget: { slots: 2, cancelRequested: false } },
  ...more,
});
const lines = [
  session,
  tick(now, 1, '[{"kind":"open-stage","stage":0}]', { opened: [[0, [0, 0]]] }),
  tick(now + 1, 2, decided(['map/0/0', 'map/1/0'])),
];
const replay = (all: readonly unknown[]) => {
  const text = all.map((line) => (typeof line === 'string' ? line : `${JSON.stringify(line)}\n`)).join('');
  return replayJob(() => Promise.resolve({ pieces: [{ epoch: 1, number: 0, text }] }));
};

describe('a journal', () => {
  it('gives back any line, in text that may be cut anywhere', () => {
    const number = fc
      .oneof(fc.double(), fc.constantFrom(Infinity, -Infinity, 0, 1e21))
      .filter((n) => !Object.is(n, -0));
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        number,
        fc.string({ unit: 'binary' }),
        fc.boolean(),
        tie('list'),
        tie('map'),
      ),
      list: fc.array(tie('any'), { maxLength: 4 }),
      map: fc.dictionary(fc.string(), tie('any'), { maxKeys: 4 }).filter((made) => !('not-finite' in made)),
    })).map;
    fc.assert(
      fc.property(value, (facts) => {
        const text = encodeLine(facts as never);
        expect(/^[\x0a\x20-\x7e]*$/.test(text)).toBe(true);
        expect(decodeLine(text)).toEqual(JSON.parse(JSON.stringify(facts, keepNumbers), giveNumbers));
      }),
    );
  });

  it('tells how an attempt got on where nobody knew it, and not once more', () => {
    const progress = {
      ...{ bytesRead: 7, bytesTotal: 9, history: 'rs.0', looks: '6y.0 rs.0' },
      ...{ recordsIn: 0, recordsOut: 0, peakMemoryBytes: 0 },
      ...({ phase: 'read', phaseMs: { init: 0, read: 1, compute: 0, write: 0 } } as const),
    } as const;
    const record = {
      ...({
        attemptId: 'map/0/0' as never,
        state: 'running',
        order: 'continue',
        launchedAt: now,
        beat: 1,
      } as const),
      progress,
    } as const;
    const told = (isKnown: boolean): unknown => {
      const seen = lean({ kind: 'attempt', record, at: now }, isKnown);
      return seen.kind === 'attempt' ? [seen.record.progress?.history, seen.record.progress?.looks] : [];
    };
    expect(told(false)).toEqual(['rs.0', '6y.0 rs.0']);
    // Its looks are taken from each record, as they are by then.
    expect(told(true)).toEqual([undefined, '6y.0 rs.0']);
  });

  it('is stored in few pieces, and nobody waits for them', async () => {
    const store = new Store();
    const journal = open(store);
    const count = 20_000;
    for (let index = 0; index < count; index++) journal.add(held(index));
    expect(store.writes).toBe(1);
    await journal.close();
    const text = await textIn(store);
    expect(text.split('\n').length).toBe(count + 2);
    expect(text.endsWith('{"kind":"end","why":"left"}\n')).toBe(true);
    expect(store.writes).toBe(Math.ceil(text.length / limits.journalPieceChars));
  });

  it('stores what has waited for a minute', async () => {
    const store = new Store();
    const journal = open(store);
    journal.add(held(1));
    journal.keep((now + 59_000) as EpochMs);
    expect(store.writes).toBe(0);
    journal.keep((now + 60_000) as EpochMs);
    expect(store.writes).toBe(1);
    await journal.close();
    expect(store.writes).toBe(2);
  });

  it('ends where it cannot be stored, and nobody fails of that', async () => {
    const store = new Store(true);
    const journal = open(store);
    warned.length = 0;
    journal.add(held(1));
    journal.keep((now + 60_000) as EpochMs);
    await journal.close();
    journal.add(held(2));
    await journal.close();
    expect([store.writes, warned]).toEqual([1, ['journal-not-kept']]);
  });

  it('says where it grows too long, and takes no more memory', async () => {
    const store = new Store();
    const journal = open(store);
    warned.length = 0;
    const state = createJobState([]);
    const message = 'x'.repeat(1_000_000);
    for (let index = 0; index < 40; index++)
      observe(
        { state, journal },
        { kind: 'unreadable', record: { key: message, kind: 'unknown', why: message, mayWork: false } },
      );
    await journal.close();
    expect(warned).toEqual(['journal-too-long']);
    const text = await textIn(store);
    expect(text.length).toBeLessThanOrEqual(limits.journalWaitingChars + limits.journalPieceChars + 100);
    expect(text.endsWith('{"kind":"end","why":"too-long"}\n')).toBe(true);
  });
});

describe('the replay of a journal', () => {
  it('decides alike', async () => {
    expect(await replay([...lines, { kind: 'end', why: 'left' }])).toEqual({
      ...{ jobId, ticks: 2, reproduced: 2, decisions: 3, unseen: [] },
      sessions: [
        {
          ...{ epoch: 1, policy: 'none', from: now, to: now + 1, ticks: 2, reproduced: 2, decisions: 3 },
          end: 'left',
        },
      ],
    });
  });

  it('counts what workers cost that keep their outputs, as the budget did', async () => {
    const store = new Store();
    const journal = open(store);
    const shapes = [{ name: 'map', tasks: 2, upstream: [], sourceBytes: [1, 1], worker }];
    const state = createJobState(shapes, 'by-index');
    const at = (ms: number): EpochMs => later(now, durationMs(ms));
    journal.add({ ...session, shapes } as never);
    let version = 0;
    /** One slot, a budget of a cent, and whatever the tick comes to. */
    const decide = (ms: number): TickDecision => {
      const dollars = { capDollars: 0.01, onBudget: 'stop' as const };
      const budget = { slots: 1, cancelRequested: false, dollars };
      const decided = decideTick(state, at(ms), config as never, budget, createRng(jobId));
      const { decisions, refusals, outcome } = decided;
      const text = JSON.stringify([...decisions, ...refusals]);
      applyDecisions(state, decisions, {
        now: at(ms),
        openStage: (stage) => {
          openStage(state, stage, [0, 0], at(ms));
        },
      });
      journal.add({
        ...{ kind: 'tick', at: at(ms), budget, ...opened(state, decisions) },
        ...(decisions.length === 0 ? {} : { version: (version += 1), decided: text }),
        ...(outcome.kind === 'continue' ? {} : { outcome }),
      });
      return decided;
    };
    decide(0);
    expect(decide(1).decisions).toMatchObject([{ kind: 'launch', attemptId: 'map/0/0' }]);
    const record = attemptRecord('map/0/0', 'done', at(60_000), { claimedAt: at(0) });
    const result = { ...resultOf('map/0/0', at(60_000)), worker: '10.0.0.7:7843' };
    observe({ state, journal }, { kind: 'attempt', record, at: at(60_000) });
    observe({ state, journal }, { kind: 'result', result, at: at(60_000) });
    // An hour of the worker costs more than the budget: it has stayed for readers.
    expect(decide(3_600_000).outcome).toMatchObject({ kind: 'fail' });
    await journal.close();
    const report = await replay([await textIn(store)]);
    expect(report).toMatchObject({ ticks: 3, reproduced: 3 });
    expect(report.firstDifference).toBeUndefined();
  });

  it('shows the first tick that came to something else, with both sides', async () => {
    const other = decided(['map/1/0', 'map/0/0']);
    const { reproduced, firstDifference } = await replay([...lines.slice(0, 2), tick(now + 1, 2, other)]);
    expect(reproduced).toBe(1);
    expect(firstDifference).toEqual({
      ...{ epoch: 1, tick: 2, at: now + 1, recorded: other },
      computed: decided(['map/0/0', 'map/1/0']),
    });
  });

  it('holds as far as there are pieces, and leaves out a line that was cut', async () => {
    const report = await replay([...lines.slice(0, 2), JSON.stringify(lines[2]).slice(0, 40)]);
    expect(report).toMatchObject({ ticks: 1, reproduced: 1, sessions: [{ end: 'cut' }] });
  });

  it('names the entries of the log of which nobody tells how they came about', async () => {
    const entry = (version: number, text: string): unknown => ({
      kind: 'entry',
      version,
      at: now,
      decided: text,
    });
    const second = [
      { ...session, epoch: 2 },
      { ...(entry(1, '[{"kind":"open-stage","stage":0}]') as object), opened: [[0, [0, 0]]] },
      entry(2, decided(['map/0/0', 'map/1/0'])),
      { kind: 'fence', version: 3 },
    ];
    const report = await replay([...lines.slice(0, 2), ...second]);
    expect(report.unseen).toEqual([2]);
    expect(report.sessions.map(({ epoch, ticks }) => [epoch, ticks])).toEqual([
      [1, 1],
      [2, 0],
    ]);
  });

  it.each([
    ['no lines', [], 'the journal has no lines'],
    [
      'another version',
      [{ ...session, format: 2 }],
      'line 1 of the journal cannot be followed: it was written by another version of Outrider, in format 2, of which this one reads 1 alone',
    ],
    ['no JSON', [session, '{"kind":\n'], 'line 2 of the journal cannot be followed: it is no JSON'],
    [
      'a policy that is gone',
      [{ ...session, config: { ...config, policy: 'luck' } }],
      'line 1 of the journal cannot be followed: there is no policy luck here',
    ],
    [
      'a line before the first',
      [lines[1]],
      'line 1 of the journal cannot be followed: it is of no scheduler',
    ],
  ])('gives one clear error of %s', async (_what, all, message) => {
    const failed = replay(all).catch((cause: unknown) => cause);
    expect(await failed).toBeInstanceOf(UnreadableRecordError);
    expect(await failed).toMatchObject({ message });
  });

  it('gives the same error whatever lies inside of a spoilt line', async () => {
    for (const spoilt of [
      { ...session, shapes: [{ name: 'map', tasks: 1, upstream: [3], sourceBytes: [] }] },
      tick(now, 3, 'no JSON'),
      tick(now, 3, '[{"kind":"launch","attemptId":"map/7/0","reason":"first"}]'),
      { kind: 'attempt', at: now, record: { attemptId: 'map/0/0', progress: 'none', state: 3, beat: 9 } },
    ])
      await expect(replay([...lines, spoilt])).rejects.toThrow(/^line 4 of the journal cannot be followed: /);
  });
});

const keepNumbers = (_key: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isFinite(value) ? { number: String(value) } : value;
const giveNumbers = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'number' in value && typeof value.number === 'string'
    ? Number(value.number)
    : value;
