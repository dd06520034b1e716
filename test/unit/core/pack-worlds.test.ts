import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AttemptId, type TaskId, taskOf } from '../../../src/contracts/ids.ts';
import type { AttemptRecord } from '../../../src/contracts/records.ts';
import { durationMs, epochMs, later } from '../../../src/contracts/units.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import {
  applyAttempt,
  applyResult,
  resumeAttempt,
  withdrawAttempt,
} from '../../../src/core/model/job-state.ts';
import { isLive, isRiding, type JobState } from '../../../src/core/model/job-view.ts';
import { holdLaunch, stampLaunch, unclaimedLaunches } from '../../../src/core/model/launches.ts';
import { ridersOf } from '../../../src/core/model/packs.ts';
import type { TickConfig } from '../../../src/core/model/tick-config.ts';
import { attemptRecord, carryOut, failure, resultOf } from '../../support/job-states.ts';
import { decided, mapOf, packing } from '../../support/packed-map.ts';

const config: TickConfig = {
  ...packing,
  silenceMs: durationMs(5_000),
  claimLeaseMs: durationMs(20_000),
  attemptsPerTask: 1_000,
};

/** A worker with what it was launched for, and the place at which it is; it works on that, or is about to claim it. */
interface Carrier {
  readonly ids: readonly AttemptId[];
  readonly name: string;
  at: number;
  works: boolean;
}

type End = 'done' | 'failed' | 'told dead' | 'silently dead';

/** One stage, its store, its log, and workers that go on, fall silent and die at any step. */
class World {
  readonly tasks: number;
  now = 0;
  state: JobState;
  readonly log: { readonly at: number; readonly decisions: readonly Decision[] }[] = [];
  readonly records = new Map<AttemptId, AttemptRecord>();
  readonly results = new Map<TaskId, AttemptId>();
  carriers: Carrier[] = [];
  launches = 0;

  constructor(tasks: number) {
    this.tasks = tasks;
    this.state = mapOf(tasks);
  }

  /** What the store has is seen: all of it, or all but each so many-th. */
  read(isBackwards = false, without = Infinity): void {
    const records = [...this.records.values()].filter((_, index) => (index + 1) % without !== 0);
    for (const id of this.results.values())
      applyResult(this.state, resultOf(id, this.now), epochMs(this.now));
    for (const each of isBackwards ? records.toReversed() : records)
      applyAttempt(this.state, each, epochMs(this.now));
    for (const each of this.state.live) each.outputReadAt = each.readAt = epochMs(this.now);
  }

  tick(slots: number, hasRoom: boolean): void {
    const { decisions } = decided(this.state, this.now, slots, config);
    this.log.push({ at: this.now, decisions });
    carryOut(this.state, decisions, this.now);
    const launched: AttemptId[] = [];
    for (const each of decisions) {
      if (each.kind === 'cancel') this.put(each.attemptId, { order: 'cancel' });
      if (each.kind === 'lose') this.lose(each.attemptId, each.reason === 'unclaimed');
      if (each.kind === 'launch' && each.behind === undefined) launched.push(each.attemptId);
    }
    for (const id of launched) holdLaunch(this.state, id);
    for (const id of launched.toReversed()) this.launch(id, hasRoom);
  }

  takeOver(makesAgain: boolean): void {
    this.state = mapOf(this.tasks);
    for (const id of this.results.values())
      applyResult(this.state, resultOf(id, this.now), epochMs(this.now));
    for (const { at, decisions } of this.log) carryOut(this.state, decisions, at);
    this.read();
    for (const each of this.state.live) each.seenAt = epochMs(this.now);
    for (const pack of this.state.packs.values()) pack.since = epochMs(this.now);
    for (const { id } of unclaimedLaunches(this.state)) {
      stampLaunch(this.state, id, epochMs(this.now));
      if (makesAgain || !this.records.has(id)) this.launch(id, true);
    }
  }

  /** A worker goes a step on: claims what is next, or ends what it is at. */
  step(carrier: Carrier, end: End): void {
    const id = carrier.ids[carrier.at];
    const record = id === undefined ? undefined : this.records.get(id);
    if (id === undefined || record === undefined) {
      this.leave(carrier);
    } else if (!carrier.works) {
      const isFree = record.state === 'launched' && record.order === 'continue';
      if (!isFree && carrier.at === 0) this.leave(carrier);
      else if (!isFree) carrier.at += 1;
      else {
        carrier.works = true;
        const claimed = { claimedAt: epochMs(this.now), node: carrier.name };
        this.records.set(id, attemptRecord(id, 'running', this.now, claimed));
      }
    } else this.finish(carrier, id, record, end);
  }

  private finish(
    carrier: Carrier,
    id: AttemptId,
    { state, order, claimedAt }: AttemptRecord,
    end: End,
  ): void {
    const began = claimedAt === undefined ? {} : { claimedAt };
    const isDone = end === 'done' && !this.results.has(taskOf(id));
    if (isDone) {
      this.results.set(taskOf(id), id);
      this.records.set(id, attemptRecord(id, 'done', this.now, began));
      [carrier.at, carrier.works] = [carrier.at + 1, false];
      return;
    }
    this.leave(carrier);
    if (state !== 'running' || end === 'silently dead') return;
    const ended = end === 'done' || order === 'cancel' ? 'cancelled' : end === 'failed' ? 'failed' : 'lost';
    const why = ended === 'cancelled' ? {} : { failure: failure('interrupted') };
    this.records.set(id, attemptRecord(id, ended, this.now, { ...began, ...why }));
  }

  private leave(carrier: Carrier): void {
    this.carriers = this.carriers.filter((each) => each !== carrier);
  }

  private put(id: AttemptId, change: Partial<AttemptRecord>): void {
    const record = this.records.get(id);
    if (record !== undefined && isLive(record)) this.records.set(id, { ...record, ...change });
  }

  private lose(id: AttemptId, isUnclaimed: boolean): void {
    if (isUnclaimed && this.records.get(id)?.claimedAt !== undefined)
      resumeAttempt(this.state, id, epochMs(this.now));
    else this.put(id, { state: 'lost', order: 'cancel', endedAt: epochMs(this.now) });
  }

  private launch(id: AttemptId, hasRoom: boolean): void {
    const attempt = this.state.attempts.get(id);
    if (attempt?.state !== 'launched') return;
    const ids = [id, ...ridersOf(this.state, id).map((rider) => rider.id)];
    for (const each of ids)
      if (!this.records.has(each)) this.records.set(each, attemptRecord(each, 'launched', this.now));
    stampLaunch(this.state, id, epochMs(this.now));
    if (hasRoom) {
      this.launches += 1;
      this.carriers.push({ ids, name: `node-${String(this.launches)}`, at: 0, works: false });
    } else withdrawAttempt(this.state, id, later(epochMs(this.now), durationMs(1_000)));
  }
}

/** What is kept of who lives and who rides is what the attempts say of themselves. */
function expectTrueIndexes({ live, riding, packs, attempts }: JobState): void {
  const seats = [...packs.values()].flatMap(({ head, riders }) => riders.map((rider) => ({ head, rider })));
  for (const attempt of attempts.values()) {
    expect([attempt.id, riding.has(attempt)]).toEqual([attempt.id, isRiding(attempt)]);
    expect([attempt.id, live.has(attempt)]).toEqual([attempt.id, isLive(attempt) && !isRiding(attempt)]);
    const own = seats.filter(({ rider }) => rider === attempt).map(({ head }) => head);
    if (isRiding(attempt)) expect([attempt.id, own]).toEqual([attempt.id, [attempt.behind]]);
  }
  for (const each of [...live, ...riding]) expect(attempts.get(each.id)).toBe(each);
}

const event = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('tick'), slots: fc.nat(8), hasRoom: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('read'),
      isBackwards: fc.boolean(),
      without: fc.constantFrom(Infinity, 2, 3, 5),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('step'),
      who: fc.nat(30),
      end: fc.constantFrom<End>('done', 'done', 'done', 'failed', 'told dead', 'silently dead'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('take over'), makesAgain: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.constantFrom(10, 500, 4_000) }) },
);

type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

function happen(world: World, what: Event): void {
  world.now += 10;
  if ('slots' in what) world.tick(what.slots, what.hasRoom);
  else if ('isBackwards' in what) world.read(what.isBackwards, what.without);
  else if ('makesAgain' in what) world.takeOver(what.makesAgain);
  else if ('ms' in what) world.now += what.ms;
  else {
    const carrier = world.carriers[what.who % Math.max(1, world.carriers.length)];
    if (carrier !== undefined) world.step(carrier, what.end);
  }
}

describe('attempts that ride together', () => {
  it('all come to their ends, whatever dies, is late, finds no room or is taken over in between', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 120 }), (events) => {
        const world = new World(24);
        world.tick(4, true);
        for (const carrier of world.carriers) world.step(carrier, 'done');
        world.now = 100;
        for (const carrier of [...world.carriers]) world.step(carrier, 'done');
        world.read();
        for (const what of events) {
          happen(world, what);
          expectTrueIndexes(world.state);
        }
        for (let round = 0; round < 200 && world.state.doneAt === undefined; round++) {
          world.now += 500;
          for (const carrier of [...world.carriers]) world.step(carrier, 'done');
          world.read();
          world.tick(8, true);
          expectTrueIndexes(world.state);
        }
        expect(world.results.size).toBe(24);
        world.read();
        expect([world.state.riding.size, world.state.packs.size]).toEqual([0, 0]);
      }),
      { numRuns: 150, seed: 20261122 },
    );
  });
});
