import type { Rng } from '../../lib/rng.ts';
import { TimedHeap } from '../../lib/timed-heap.ts';
import type { JobProfile, RunTimes, SlotPast } from './job-profile.ts';
import { timesAt } from './run-times.ts';

/** Looks at a simulated run at regular times while it lasts. */
export interface RunLook {
  readonly everyMs: number;
  /** @param finished - tasks of each stage that have ended, `started` those that have begun; good until it returns. */
  visit(atMs: number, finished: Int32Array, started: Int32Array): void;
}

/** Attempts that a task may lose in a simulated run; the next one succeeds. */
const mostFailures = 3;

interface Reader {
  readonly stage: number;
  readonly isBarrier: boolean;
}

/**
 * Simulates runs of a job on a number of slots: each slot is given a ready task, of earlier stages before later ones as
 * production's scheduler does, and within a stage in the order in which they became ready; it waits its queueing time, runs, and may fail and be queued again (Jockey, §4.1: outliers and barriers, no differences of
 * input size, no copies). All times are drawn from the profile's samples; beyond the paper, a slot's first attempt of the
 * job or of a stage has times of its own, for it starts cold, and times depend on how many slots contend. The slot that
 * was freed last is given the next task, as Lambda reuses environments.
 */
export class RunSimulator {
  readonly #profile: JobProfile;
  readonly #tasks: number;
  /** Index of the first task of each stage, and of each task its stage. */
  readonly #first: Int32Array;
  readonly #stageOf: Int32Array;
  readonly #readers: readonly (readonly Reader[])[];
  /** Tasks that each task waits for at first, but for barriers; barriers of each stage at first. */
  readonly #waitsFor: Int32Array;
  readonly #barriers: Int32Array;
  readonly #queues: readonly Float64Array[];
  /** Samples of each stage for `#slots`. */
  #times: readonly Readonly<Record<SlotPast, Float64Array>>[] = [];
  #slots = 0;
  /** Run of this simulator in which a slot last ran something, and something of a stage, by slot × stages + stage. */
  #ranIn: Int32Array = new Int32Array(0);
  #ranStageIn: Int32Array = new Int32Array(0);
  #runs = 0;
  /** Slots that are free, the one freed last at the end; the slot of each task that runs. */
  #free: Int32Array = new Int32Array(0);
  readonly #slotOf: Int32Array;

  readonly #left: Int32Array;
  readonly #barriersLeft: Int32Array;
  readonly #finished: Int32Array;
  readonly #started: Int32Array;
  readonly #failures: Uint8Array;
  /** Ready tasks of each stage, a ring within its own places; where each begins, and how many there are. */
  readonly #ready: Int32Array;
  readonly #readyFrom: Int32Array;
  readonly #readyCount: Int32Array;
  /** No stage before this one has a ready task. */
  #lowest = 0;
  readonly #events: TimedHeap;

  constructor(profile: JobProfile) {
    const { stages } = profile;
    this.#profile = profile;
    this.#first = new Int32Array(stages.length);
    this.#tasks = stages.reduce((sum, { tasks }, index) => {
      this.#first[index] = sum;
      return sum + tasks;
    }, 0);
    this.#stageOf = new Int32Array(this.#tasks);
    for (const [index, { tasks }] of stages.entries()) {
      const first = this.#first[index] ?? 0;
      this.#stageOf.fill(index, first, first + tasks);
    }
    this.#readers = stages.map((_, read) =>
      stages.flatMap(({ inputs }, stage) =>
        inputs.filter((input) => input.stage === read).map(({ isBarrier }) => ({ stage, isBarrier })),
      ),
    );
    this.#barriers = Int32Array.from(
      stages,
      ({ inputs }) => inputs.filter((input) => input.isBarrier).length,
    );
    this.#waitsFor = new Int32Array(this.#tasks);
    this.#countWaits();
    this.#queues = stages.map(({ queueMs }) => Float64Array.from(queueMs));
    this.#slotOf = new Int32Array(this.#tasks);
    this.#left = new Int32Array(this.#tasks);
    this.#barriersLeft = new Int32Array(stages.length);
    this.#finished = new Int32Array(stages.length);
    this.#started = new Int32Array(stages.length);
    this.#failures = new Uint8Array(this.#tasks);
    this.#ready = new Int32Array(this.#tasks);
    this.#readyFrom = new Int32Array(stages.length);
    this.#readyCount = new Int32Array(stages.length);
    this.#events = new TimedHeap(1_024);
  }

  /**
   * One run on `slots` slots; answers when its last task ends, in ms.
   *
   * @param slots - at least 1.
   */
  run(slots: number, rng: Rng, look?: RunLook): number {
    this.#take(Math.max(1, Math.min(this.#tasks, Math.floor(slots))), slots);
    this.#reset();
    let free = this.#free.length;
    let now = 0;
    let nextLook = look === undefined ? Infinity : 0;
    for (;;) {
      for (
        let task = free > 0 ? this.#takeReady() : -1;
        task >= 0;
        task = free > 0 ? this.#takeReady() : -1
      ) {
        this.#slotOf[task] = this.#free[--free] ?? 0;
        this.#events.push(now + this.#draw(task, rng), task);
      }
      const { time } = this.#events;
      for (
        ;
        nextLook < time && nextLook !== Infinity && time !== Infinity;
        nextLook += look?.everyMs ?? Infinity
      )
        look?.visit(nextLook, this.#finished, this.#started);
      const task = this.#events.pop();
      if (task < 0) return now;
      now = time;
      this.#free[free++] = this.#slotOf[task] ?? 0;
      if (this.#fails(task, rng)) this.#makeReady(task);
      else this.#end(task);
    }
  }

  /** Makes ready for so many slots, of which `used` can be busy at once. */
  #take(used: number, slots: number): void {
    this.#runs++;
    if (this.#free.length !== used) {
      this.#free = new Int32Array(used);
      this.#ranIn = new Int32Array(used);
      this.#ranStageIn = new Int32Array(used * this.#barriers.length);
    }
    for (let slot = 0; slot < used; slot++) this.#free[slot] = used - 1 - slot;
    if (this.#slots === slots) return;
    this.#slots = slots;
    this.#times = this.#profile.stages.map(({ runs }) => typed(timesAt(runs, slots)));
  }

  #countWaits(): void {
    for (const [index, { inputs, tasks }] of this.#profile.stages.entries()) {
      for (const input of inputs) {
        if (input.isBarrier) continue;
        const parents = this.#profile.stages[input.stage]?.tasks ?? 0;
        const first = this.#first[index] ?? 0;
        for (let at = 0; at < tasks; at++) {
          const [from, to] = overlap(at, tasks, parents);
          this.#waitsFor[first + at] = (this.#waitsFor[first + at] ?? 0) + to - from;
        }
      }
    }
  }

  #reset(): void {
    this.#left.set(this.#waitsFor);
    this.#barriersLeft.set(this.#barriers);
    this.#finished.fill(0);
    this.#started.fill(0);
    this.#failures.fill(0);
    this.#events.clear();
    this.#readyFrom.fill(0);
    this.#readyCount.fill(0);
    this.#lowest = 0;
    for (let stage = 0; stage < this.#barriers.length; stage++) this.#open(stage);
  }

  /** Makes ready what of a stage waits for nothing, once it has no barrier left. */
  #open(stage: number): void {
    if ((this.#barriersLeft[stage] ?? 0) > 0) return;
    const first = this.#first[stage] ?? 0;
    const end = first + (this.#profile.stages[stage]?.tasks ?? 0);
    for (let task = first; task < end; task++) if (this.#left[task] === 0) this.#makeReady(task);
  }

  #makeReady(task: number): void {
    const stage = this.#stageOf[task] ?? 0;
    const size = this.#profile.stages[stage]?.tasks ?? 1;
    const count = this.#readyCount[stage] ?? 0;
    const place = ((this.#readyFrom[stage] ?? 0) + count) % size;
    this.#ready[(this.#first[stage] ?? 0) + place] = task;
    this.#readyCount[stage] = count + 1;
    if (stage < this.#lowest) this.#lowest = stage;
  }

  /** The ready task of the first stage that has one; -1 where none has. */
  #takeReady(): number {
    const stages = this.#readyCount.length;
    while (this.#lowest < stages && this.#readyCount[this.#lowest] === 0) this.#lowest++;
    const stage = this.#lowest;
    if (stage >= stages) return -1;
    const from = this.#readyFrom[stage] ?? 0;
    this.#readyFrom[stage] = (from + 1) % (this.#profile.stages[stage]?.tasks ?? 1);
    this.#readyCount[stage] = (this.#readyCount[stage] ?? 1) - 1;
    return this.#ready[(this.#first[stage] ?? 0) + from] ?? -1;
  }

  #draw(task: number, rng: Rng): number {
    const stage = this.#stageOf[task] ?? 0;
    if (this.#failures[task] === 0) this.#started[stage] = (this.#started[stage] ?? 0) + 1;
    const past = this.#pastOf(this.#slotOf[task] ?? 0, stage);
    const ranMs = drawn(this.#times[stage]?.[past], rng);
    const { queuedShare = 1 } = this.#profile.stages[stage] ?? {};
    return queuedShare < 1 && rng.next() >= queuedShare ? ranMs : ranMs + drawn(this.#queues[stage], rng);
  }

  /** What a slot has run before it now runs a task of the stage. */
  #pastOf(slot: number, stage: number): SlotPast {
    const place = slot * this.#barriers.length + stage;
    const isCold = this.#ranIn[slot] !== this.#runs;
    const isFirst = this.#ranStageIn[place] !== this.#runs;
    this.#ranIn[slot] = this.#runs;
    this.#ranStageIn[place] = this.#runs;
    return isCold ? 'cold' : isFirst ? 'first' : 'later';
  }

  #fails(task: number, rng: Rng): boolean {
    const share = this.#profile.stages[this.#stageOf[task] ?? 0]?.failureShare ?? 0;
    if (share <= 0 || (this.#failures[task] ?? 0) >= mostFailures || rng.next() >= share) return false;
    this.#failures[task] = (this.#failures[task] ?? 0) + 1;
    return true;
  }

  #end(task: number): void {
    const stage = this.#stageOf[task] ?? 0;
    const tasks = this.#profile.stages[stage]?.tasks ?? 0;
    const finished = (this.#finished[stage] ?? 0) + 1;
    this.#finished[stage] = finished;
    for (const reader of this.#readers[stage] ?? []) {
      if (!reader.isBarrier) this.#endInput(task - (this.#first[stage] ?? 0), tasks, reader.stage);
      else if (finished === tasks) {
        this.#barriersLeft[reader.stage] = (this.#barriersLeft[reader.stage] ?? 0) - 1;
        this.#open(reader.stage);
      }
    }
  }

  /** The readers' tasks whose share of the inputs overlaps that of the one that has ended wait for one less. */
  #endInput(at: number, tasks: number, stage: number): void {
    const first = this.#first[stage] ?? 0;
    const [from, to] = overlap(at, tasks, this.#profile.stages[stage]?.tasks ?? 0);
    const isOpen = (this.#barriersLeft[stage] ?? 0) === 0;
    for (let task = first + from; task < first + to; task++) {
      const left = (this.#left[task] ?? 0) - 1;
      this.#left[task] = left;
      if (left === 0 && isOpen) this.#makeReady(task);
    }
  }
}

/** Those of `others` equal shares, as [from, to), that overlap share `at` of `tasks`. */
const overlap = (at: number, tasks: number, others: number): readonly [number, number] => [
  Math.floor((at * others) / tasks),
  Math.ceil(((at + 1) * others) / tasks),
];

const drawn = (sample: Float64Array | undefined, rng: Rng): number =>
  sample === undefined || sample.length === 0 ? 0 : (sample[Math.floor(rng.next() * sample.length)] ?? 0);

const typed = (times: RunTimes): Readonly<Record<SlotPast, Float64Array>> => ({
  cold: Float64Array.from(times.cold),
  first: Float64Array.from(times.first),
  later: Float64Array.from(times.later),
});
