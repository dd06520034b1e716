import { describe, expect, it } from 'vitest';
import { MemoryAttemptStore } from '../../../src/adapters/memory/memory-attempt-store.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import { attemptDataKey } from '../../../src/contracts/keys.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import type { AttemptRecord } from '../../../src/contracts/records.ts';
import type { SavedOf } from '../../../src/contracts/saved-work.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { sharesBytes } from '../../../src/operators/range-search.ts';
import { operators } from '../../../src/operators/registry.ts';
import type { EngineSize, Operator, TaskContext, TaskInput } from '../../../src/worker/operator.ts';
import { frameOf } from '../../../src/worker/framing.ts';
import { type AttemptDeps, runAttempt } from '../../../src/worker/run-attempt.ts';
import { PlaceTakenError } from '../../../src/worker/time-limit.ts';
import { InterruptedWorker, noticeMs, ranMs, savedBy } from '../../support/interrupted-worker.ts';
import { latin1, putSource } from '../../support/worker-fixtures.ts';
import type { StageOfTest } from '../../support/worker-stage.ts';

const source = { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const;

/** Two files of some 2 MB and 1 MB, the second without an end of its last line. */
const lines = Array.from(
  { length: 60_000 },
  (_, line) => `word${String(line % 977)} and ${String(line)} more words`,
);
const texts = [`${lines.slice(0, 40_000).join('\n')}\n`, lines.slice(40_000).join('\n')];

/** Any operator that a stage of a test may run as "grep". */
interface Kind {
  readonly operator: Operator;
  readonly stage: Omit<StageOfTest, 'run' | 'inputs'>;
  /** Other than text. */
  readonly csv?: (line: number) => string;
  /** Bounds between partitions, and how lines that equal them are spread. */
  readonly bounds?: readonly (readonly [key: string, shares: readonly number[]])[];
  readonly engine?: EngineSize;
}
const aggregates = [{ op: 'count' }, { op: 'sum', column: 'n' }];
const kinds: Readonly<Record<string, Kind>> = {
  'word count': { operator: operators.tokenize, stage: { output: 'sorted', partitions: 3 } },
  'grep -c': {
    operator: operators['grep-count'],
    stage: { output: 'sorted', partitions: 2, options: { pattern: 'word[0-9]*1' } },
  },
  grep: { operator: operators.grep, stage: { output: 'final', options: { pattern: '77' } } },
  'group by, of few groups': {
    operator: operators['groupby-map'],
    stage: { output: 'sorted', partitions: 2, options: { key: 'k', aggregates } },
    csv: (line) => `key ${String(line % 97)},${String(line)},the rest of a row`,
  },
  'sort, of many equal lines': {
    operator: operators['range-partition'],
    stage: { output: 'sorted', partitions: 3 },
    bounds: [
      ['word3', [1, 2]],
      ['word5 and 5 more words', []],
    ],
  },
  'grep for another stage': {
    operator: operators.grep,
    stage: { output: 'unsorted', options: { pattern: '7' } },
  },
};

/** Each file with what its lines are of. */
function textsOf({ csv, bounds }: Pick<Kind, 'csv' | 'bounds'>): readonly string[] {
  if (csv !== undefined)
    return [0, 1].map((file) => `k,n,rest\n${lines.map((_, line) => `${csv(2 * line + file)}\n`).join('')}`);
  // Every third line is one and the same.
  if (bounds !== undefined) return texts.map((text) => text.replaceAll(/^.*[147] more words$/gm, 'word3'));
  return texts;
}

const framesOf = ({ bounds = [] }: Pick<Kind, 'bounds'>): Buffer =>
  Buffer.concat(bounds.map(([key, shares]) => frameOf(latin1(key), sharesBytes(shares))));

/** Attempts whose ends are written twice where that is said, since the first answer was lost. */
class RepeatingAttempts extends MemoryAttemptStore {
  repeatsEnds = false;

  override async end(...call: Parameters<MemoryAttemptStore['end']>): Promise<'ended' | 'refused'> {
    const answer = await super.end(...call);
    return this.repeatsEnds ? super.end(...call) : answer;
  }
}

/** A worker whose attempts are interrupted once they have seen so many blocks of input. */
class BefallenWorker extends InterruptedWorker {
  override readonly attempts = new RepeatingAttempts();
  segments: SourceSegment[] = [];

  async load(kind: Pick<Kind, 'csv'> = {}): Promise<void> {
    for (const [index, text] of textsOf(kind).entries())
      this.segments.push(
        await putSource(this.objects, { bucket: 'in', key: `f${String(index)}` }, latin1(text)),
      );
  }

  /** Runs attempt number `number`; `what` befalls it at its block number `at`, from 0. */
  async attemptOf(
    { operator, stage, csv, bounds, engine }: Kind,
    number: number,
    more: {
      readonly at?: number;
      readonly what?: (stop: AbortController) => Promise<void>;
      readonly saved?: SavedOf | undefined;
      readonly deps?: Partial<AttemptDeps>;
    } = {},
  ): Promise<AttemptRecord> {
    const { at, saved } = more;
    const run = (context: TaskContext): Promise<void> => operator.run(context);
    const stop = new AbortController();
    const what =
      more.what ??
      (async () => {
        await this.clock.advance(ranMs);
        stop.abort(new PlaceTakenError('Spot needs its place', noticeMs));
      });
    const befallen: Operator = {
      ...operator,
      run: (context) => operator.run(at === undefined ? context : befalling(context, at, () => what(stop))),
    };
    const planned = csv === undefined ? source : ({ ...source, format: 'csv', multiline: false } as const);
    const inputs = [{ planned, segments: this.segments }, ...(await this.boundsOf(bounds))];
    const payload = await this.prepare({ ...stage, run, inputs }, number);
    const deps = this.deps(
      { ...stage, run },
      {
        stopSignal: stop.signal,
        log: this.log(),
        sortMemoryBytes: 65_536,
        ...(engine && { engine }),
        ...more.deps,
      },
    );
    await runAttempt(
      { ...deps, operators: { ...deps.operators, grep: befallen } },
      { ...payload, ...(saved === undefined ? {} : { saved }) },
    );
    return this.ended(number);
  }

  private async boundsOf(bounds: Kind['bounds']): Promise<NonNullable<StageOfTest['inputs']>> {
    if (bounds === undefined) return [];
    const planned = {
      kind: 'stage',
      stage: 'bounds',
      pattern: 'broadcast',
      producerTasks: 1,
      producerPartitions: 1,
    } as const;
    return [{ planned, segments: [await this.putData('bounds', 0, framesOf({ bounds }))] }];
  }
}

/** The context of a task to which something happens when it gets its block number `at`. */
function befalling(context: TaskContext, at: number, what: () => Promise<void>): TaskContext {
  let blocks = 0;
  async function* noBlocks(): AsyncGenerator<never> {}
  async function* befallen<T>(stream: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const item of stream) {
      if (blocks++ === at) await what();
      yield item;
    }
  }
  const inputs = context.inputs.map((input): TaskInput => {
    return {
      ...input,
      blocks: () => befallen(input.blocks()),
      rows: () => befallen(input.rows()),
      ...(input.csv === undefined
        ? {}
        : { csv: (key, needed) => befallen(input.csv?.(key, needed) ?? noBlocks()) }),
    };
  });
  return { ...context, inputs };
}

async function unbroken(kind: Kind): Promise<object> {
  const worker = new BefallenWorker();
  await worker.load(kind);
  await worker.attemptOf(kind, 0);
  return worker.outcome();
}

const kindOf = (name: string): Kind => {
  const kind = kinds[name];
  if (kind === undefined) throw new Error(name);
  return kind;
};
const totalBytes = texts.join('').length;
/** What an unbroken run of a kind reads. */
const bytesReadOf = (kind: Kind): number => textsOf(kind).join('').length + framesOf(kind).length;

describe('a task whose attempt loses its place', () => {
  it.each(Object.keys(kinds))(
    'is gone on with by the next one, which reads the rest alone: %s',
    async (name) => {
      const kind = kindOf(name);
      const whole = await unbroken(kind);
      const totalBytes = bytesReadOf(kind);
      for (const at of [0, 4, 13]) {
        const worker = new BefallenWorker();
        await worker.load(kind);
        const first = await worker.attemptOf(kind, 0, { at });
        expect(first).toMatchObject({ state: 'failed', failure: { cause: 'interrupted' } });
        const done = first.saved?.bytesDone ?? 0;
        expect(done).toBeGreaterThan(at * 30_000);
        expect(first.saved?.bytesTotal).toBe(totalBytes);
        expect(first.failure?.message).toMatch(
          /^Spot needs its place; it hands on the \d+ % of its input that it has done$/,
        );
        expect((await worker.leftovers()).uploads).toEqual([]);
        const second = await worker.attemptOf(kind, 1, { saved: savedBy(first) });
        expect(second).toMatchObject({
          state: 'done',
          progress: {
            bytesRead: totalBytes - done,
            bytesTotal: totalBytes - done,
            takenUp: { attempt: 0, bytes: done },
          },
        });
        expect(await worker.outcome()).toEqual(whole);
        expect(worker.whys).toEqual([
          `taken-up: it took up at ${String(Math.floor((100 * done) / totalBytes))} % what attempt 0 had done when it had to end`,
        ]);
      }
    },
  );

  it.each(Object.keys(kinds))(
    'may lose it again and again: what the last hands on holds all before it: %s',
    async (name) => {
      const kind = kindOf(name);
      const totalBytes = bytesReadOf(kind);
      const worker = new BefallenWorker();
      await worker.load(kind);
      let saved: SavedOf | undefined;
      let done = 0;
      for (let number = 0; number < 3; number++) {
        const record = await worker.attemptOf(kind, number, { at: 2, saved });
        expect(record.saved?.bytesDone).toBeGreaterThan(done);
        done = record.saved?.bytesDone ?? 0;
        saved = savedBy(record);
      }
      const last = await worker.attemptOf(kind, 3, { saved });
      expect(last.progress).toMatchObject({
        bytesRead: totalBytes - done,
        takenUp: { attempt: 2, bytes: done },
      });
      expect(await worker.outcome()).toEqual(await unbroken(kind));
    },
  );

  it.each(['gone', 'short', 'changed in its data', 'changed in its note'])(
    'begins at the begin where what was handed on is %s, and has not failed',
    async (how) => {
      for (const name of ['word count', 'grep']) {
        const kind = kindOf(name);
        const worker = new BefallenWorker();
        await worker.load();
        const first = await worker.attemptOf(kind, 0, { at: 3 });
        const ref = { bucket: worker.dataBucket, key: attemptDataKey(worker.jobId, first.attemptId) };
        const body = Buffer.from(await worker.objects.readAll(ref));
        if (how === 'gone') await worker.objects.remove(ref.bucket, [ref.key]);
        if (how === 'short') await worker.objects.write(ref, body.subarray(0, 500));
        const flipped = how.endsWith('note') ? body.length - 5 : (first.saved?.dataBytes ?? 0) - 2;
        body.writeUInt8(body.readUInt8(flipped) ^ 4, flipped);
        if (how.startsWith('changed')) await worker.objects.write(ref, body);
        const second = await worker.attemptOf(kind, 1, { saved: savedBy(first) });
        expect(second).toMatchObject({
          state: 'done',
          progress: { bytesRead: totalBytes, bytesTotal: totalBytes },
        });
        expect(second.progress?.takenUp).toBeUndefined();
        expect(await worker.outcome()).toEqual(await unbroken(kind));
        expect(worker.whys.join()).toMatch(
          /^not-taken-up: it begins at the begin, since what attempt 0 had done cannot be taken up: /,
        );
      }
    },
  );

  it('hands nothing on, and leaves nothing, where its operator does not allow it', async () => {
    const worker = new BefallenWorker();
    await worker.load();
    const { resumes, ...operator } = operators.tokenize;
    expect(resumes).toBe(true);
    const first = await worker.attemptOf({ operator, stage: { output: 'sorted', partitions: 3 } }, 0, {
      at: 3,
    });
    expect(first).toMatchObject({
      state: 'failed',
      failure: { cause: 'interrupted', message: 'Spot needs its place' },
    });
    expect(first.saved).toBeUndefined();
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  });

  it('hands on nothing of a part that was sent to where only Finish completes it', async () => {
    const worker = new BefallenWorker();
    await worker.load();
    const doubled: Operator = {
      ...operators.grep,
      async run({ inputs, output }) {
        for (const input of inputs)
          for await (const { bytes } of input.blocks())
            await output.write(Buffer.concat(Array.from({ length: 40 }, () => bytes)));
      },
    };
    const first = await worker.attemptOf(
      { operator: doubled, stage: { output: 'final', options: { pattern: 'x' } } },
      0,
      { at: 9 },
    );
    expect(first).toMatchObject({ state: 'failed', failure: { message: 'Spot needs its place' } });
    expect(first.saved).toBeUndefined();
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  });

  it('goes on to its end where it will soon have read all', async () => {
    const worker = new BefallenWorker();
    await worker.load();
    const what = (stop: AbortController) => async (): Promise<void> => {
      await worker.clock.advance(1_000);
      stop.abort(new PlaceTakenError('Spot needs its place', noticeMs));
    };
    const first = await worker.attemptOf(kindOf('word count'), 0, { at: 6, what: (stop) => what(stop)() });
    expect(first.state).toBe('done');
  });

  it('removes what it hands on where it was given up meanwhile: nobody knows of it', async () => {
    const worker = new BefallenWorker();
    await worker.load();
    const what = async (stop: AbortController): Promise<void> => {
      await worker.clock.advance(ranMs);
      await worker.attempts.markLost(worker.space, attemptIdOf('work', 0, 0), worker.clock.now());
      stop.abort(new PlaceTakenError('Spot needs its place', noticeMs));
    };
    // The heartbeat is not heard any more before the end.
    const first = await worker.attemptOf(kindOf('word count'), 0, { at: 3, what });
    expect(first.state).toBe('lost');
    expect(first.saved).toBeUndefined();
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  });

  it('keeps what it hands on where its end was recorded, and the answer lost', async () => {
    const kind = kindOf('word count');
    const worker = new BefallenWorker();
    await worker.load();
    worker.attempts.repeatsEnds = true;
    const first = await worker.attemptOf(kind, 0, { at: 3 });
    expect(first).toMatchObject({ state: 'failed', saved: { bytesTotal: totalBytes } });
    const second = await worker.attemptOf(kind, 1, { saved: savedBy(first) });
    expect(second.progress?.takenUp).toMatchObject({ attempt: 0, bytes: first.saved?.bytesDone });
    expect(await worker.outcome()).toEqual(await unbroken(kind));
  });

  it('says of what it hands on that the work of another could not be taken up', async () => {
    const kind = kindOf('word count');
    const worker = new BefallenWorker();
    await worker.load();
    const first = await worker.attemptOf(kind, 0, { at: 4 });
    await worker.objects.remove(worker.dataBucket, [attemptDataKey(worker.jobId, first.attemptId)]);
    const second = await worker.attemptOf(kind, 1, { at: 2, saved: savedBy(first) });
    expect(second.saved).toMatchObject({ insteadOf: 0 });
    const third = await worker.attemptOf(kind, 2, { at: 2, saved: savedBy(second) });
    expect(third.progress?.takenUp).toMatchObject({ attempt: 1, bytes: second.saved?.bytesDone });
    expect(third.saved?.insteadOf).toBeUndefined();
  });
});

describe('a task whose time on Lambda runs out', () => {
  it('hands on what it has done before that, and is gone on with elsewhere', async () => {
    const kind = kindOf('word count');
    const worker = new BefallenWorker();
    await worker.load();
    const endsAt = later(worker.clock.now(), durationMs(900_000));
    const what = async (): Promise<void> => worker.clock.advance(825_000);
    const first = await worker.attemptOf(kind, 0, { at: 3, what, deps: { endsAt } });
    expect(first).toMatchObject({ state: 'failed', failure: { cause: 'timeout' } });
    expect(first.failure?.message).toMatch(
      /^it left its task \d+ s before its environment's time was up, in which it would not have been done; it hands on the \d+ %/,
    );
    await worker.attemptOf(kind, 1, { saved: savedBy(first) });
    expect(await worker.outcome()).toEqual(await unbroken(kind));
  });
});
