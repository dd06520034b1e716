import { describe, expect, it } from 'vitest';
import { describeInbox } from './inbox-suite.ts';
import { describeLosses } from './losses-suite.ts';
import { describeReading } from './reading-suite.ts';
import { attemptParts } from '../../../src/contracts/ids.ts';
import type { AttemptRecord, TaskResult } from '../../../src/contracts/records.ts';
import type { AttemptStore, TaskSpace } from '../../../src/ports/attempt-store.ts';
import { describeDeaths } from './attempt-deaths-suite.ts';
import { at, attempt, freshJobId, progress, resultOf, seconds, tally } from './builders.ts';

const PLACE = { node: 'stream-1', zone: 'use1-az1' };
const freshSpace = (): TaskSpace => ({ jobId: freshJobId(), shards: 4 });

const byAttempt = (results: readonly TaskResult[]): readonly TaskResult[] =>
  results.toSorted((a, b) => attemptParts(a.attemptId).attempt - attemptParts(b.attemptId).attempt);

async function only(store: AttemptStore, space: TaskSpace): Promise<AttemptRecord | undefined> {
  return (await store.all(space)).attempts[0];
}

/** What every attempt store must do. */
export function describeAttemptStore(name: string, make: () => AttemptStore | Promise<AttemptStore>): void {
  describe(`${name} as an attempt store`, () => {
    describeLife(make);
    describeOrders(make);
    describeDeaths(make);
    describeResults(make);
    describeReplicas(make);
    describeReading(make);
    describeLosses(make);
    describeInbox(name, make);
  });
}

function describeLife(make: () => AttemptStore | Promise<AttemptStore>): void {
  it('follows an attempt from launch to end', async () => {
    const store = await make();
    const space = freshSpace();
    expect(await store.create(space, attempt(0), at(1))).toBe('created');
    expect(await only(store, space)).toEqual({
      attemptId: 'map/0/0',
      state: 'launched',
      order: 'continue',
      launchedAt: at(1),
      beat: 0,
    });
    expect(await store.claim(space, attempt(0), PLACE, at(2), seconds(1))).toBe('claimed');
    expect(await only(store, space)).toMatchObject({ beat: 1, reportedAt: at(2), nextMs: seconds(1) });
    expect(await store.report(space, attempt(0), progress(400), at(3), seconds(10))).toBe('continue');
    expect(await only(store, space)).toEqual({
      attemptId: 'map/0/0',
      state: 'running',
      order: 'continue',
      launchedAt: at(1),
      claimedAt: at(2),
      node: 'stream-1',
      zone: 'use1-az1',
      progress: progress(400),
      beat: 2,
      reportedAt: at(3),
      nextMs: seconds(10),
    });
    const fetched = { bytes: 250, ms: 40 };
    const history = 'rs.0 rs0.i00';
    const looks = '6y.0 rs.0 rs0.i00';
    await store.report(space, attempt(0), { ...progress(500), fetched, history, looks }, at(3));
    expect((await only(store, space))?.progress).toEqual({ ...progress(500), fetched, history, looks });
    await store.end(space, attempt(0), { state: 'done', progress: progress(1_000) }, at(4));
    expect(await only(store, space)).toMatchObject({
      state: 'done',
      endedAt: at(4),
      reportedAt: at(4),
      beat: 4,
      progress: progress(1_000),
    });
  });

  it('keeps no zone of an attempt whose worker knows none', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    expect(await store.claim(space, attempt(0), { node: 'stream-1' }, at(2))).toBe('claimed');
    const claimed = await only(store, space);
    expect(claimed).toMatchObject({ state: 'running', node: 'stream-1' });
    expect(claimed).not.toHaveProperty('zone');
  });

  it('keeps why an attempt failed', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    await store.claim(space, attempt(0), PLACE, at(2));
    const failure = { cause: 'out-of-memory', message: 'heap limit' } as const;
    await store.end(space, attempt(0), { state: 'failed', progress: progress(7), failure }, at(3));
    expect(await only(store, space)).toMatchObject({ state: 'failed', failure });
  });

  it('keeps what an attempt hands on with its end, once, and what one has taken up', async () => {
    const store = await make();
    const space = freshSpace();
    const saved = { dataBytes: 70, noteBytes: 9, noteCrc: 4_294_967_295, bytesDone: 600, bytesTotal: 1_000 };
    const failure = { cause: 'timeout', message: 'S3 was slow', mayPass: true } as const;
    const told = { takenUp: { attempt: 0, bytes: 600, ms: 70 }, handsOn: true };
    await store.create(space, attempt(0), at(1));
    const end = { state: 'failed', progress: { ...progress(7), ...told }, failure, saved } as const;
    expect(await store.end(space, attempt(0), end, at(2))).toBe('refused');
    expect((await only(store, space))?.saved).toBeUndefined();
    await store.claim(space, attempt(0), PLACE, at(2));
    expect(await store.end(space, attempt(0), end, at(3))).toBe('ended');
    expect(await only(store, space)).toMatchObject({
      state: 'failed',
      saved,
      failure,
      progress: told,
    });
    // As it is told whose first answer was lost: what it has handed on is known.
    expect(await store.end(space, attempt(0), end, at(3))).toBe('ended');
    const { state, progress: done } = end;
    expect(await store.end(space, attempt(0), { state, progress: done, failure }, at(3))).toBe('refused');
    const later = { ...end, saved: { ...saved, dataBytes: 1 } };
    expect(await store.end(space, attempt(0), later, at(4))).toBe('refused');
    expect((await only(store, space))?.saved).toEqual(saved);
  });

  it('keeps the upload that an attempt notes, and answers its orders', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    expect(await store.noteUpload(space, attempt(0), { since: at(2) }, at(2))).toBe('cancel');
    expect((await only(store, space))?.upload).toBeUndefined();
    await store.claim(space, attempt(0), PLACE, at(2));
    expect(await store.noteUpload(space, attempt(0), { since: at(3) }, at(3))).toBe('continue');
    expect(await only(store, space)).toMatchObject({ upload: { since: at(3) }, beat: 2 });
    const upload = { since: at(3), uploadId: 'u1' };
    expect(await store.noteUpload(space, attempt(0), upload, at(4))).toBe('continue');
    await store.orderCancel(space, attempt(0));
    expect(await store.noteUpload(space, attempt(0), upload, at(6))).toBe('cancel');
    await store.end(space, attempt(0), { state: 'cancelled', progress: progress(7) }, at(7));
    expect(await store.noteUpload(space, attempt(0), { since: at(8), uploadId: 'u2' }, at(8))).toBe('cancel');
    expect((await only(store, space))?.upload).toEqual(upload);
  });

  it('does not create an attempt twice', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    await store.claim(space, attempt(0), PLACE, at(2));
    expect(await store.create(space, attempt(0), at(3))).toBe('exists');
    expect(await only(store, space)).toMatchObject({ state: 'running', launchedAt: at(1) });
  });

  it('grants exactly one of twenty claims of one attempt', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, rival) =>
        store.claim(space, attempt(0), { node: `node-${rival}`, zone: 'z' }, at(2)),
      ),
    );
    expect(tally(answers)).toEqual({ claimed: 1, refused: 19 });
    expect((await only(store, space))?.node).toBe(`node-${answers.indexOf('claimed')}`);
  });

  it('refuses the claim of an attempt that was never created, and leaves no trace of it', async () => {
    const store = await make();
    const space = freshSpace();
    expect(await store.claim(space, attempt(0), PLACE, at(2))).toBe('refused');
    expect(await store.report(space, attempt(0), progress(1), at(2))).toBe('cancel');
    expect(await store.all(space)).toEqual({ attempts: [], results: [], replicas: [] });
  });
}

function describeOrders(make: () => AttemptStore | Promise<AttemptStore>): void {
  it('tells a running attempt to cancel with its next report, and records that report', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    await store.claim(space, attempt(0), PLACE, at(2));
    await store.orderCancel(space, attempt(0));
    expect(await store.report(space, attempt(0), progress(5), at(4))).toBe('cancel');
    expect(await only(store, space)).toMatchObject({
      state: 'running',
      order: 'cancel',
      progress: progress(5),
    });
  });

  it('refuses the claim of an attempt that was cancelled before it began', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    await store.orderCancel(space, attempt(0));
    expect(await store.claim(space, attempt(0), PLACE, at(3))).toBe('refused');
  });

  it('takes a lost attempt out: no claim, no report, no end', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    await store.create(space, attempt(1), at(1));
    await store.claim(space, attempt(1), PLACE, at(2));
    await store.markLost(space, attempt(0), at(3));
    await store.markLost(space, attempt(1), at(3));
    expect(await store.claim(space, attempt(0), PLACE, at(4))).toBe('refused');
    expect(await store.report(space, attempt(1), progress(5), at(4))).toBe('cancel');
    await store.end(space, attempt(1), { state: 'done', progress: progress(9) }, at(5));
    const { attempts } = await store.all(space);
    for (const one of attempts) expect(one).toMatchObject({ state: 'lost', order: 'cancel', endedAt: at(3) });
    expect(attempts).toHaveLength(2);
  });

  it('leaves an attempt that has ended as it is', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    await store.claim(space, attempt(0), PLACE, at(2));
    await store.end(space, attempt(0), { state: 'done', progress: progress(9) }, at(3));
    const ended = await only(store, space);
    await store.markLost(space, attempt(0), at(4));
    await store.orderCancel(space, attempt(0));
    await store.end(space, attempt(0), { state: 'cancelled', progress: progress(1) }, at(4));
    expect(await store.report(space, attempt(0), progress(1), at(4))).toBe('cancel');
    expect(await only(store, space)).toEqual(ended);
  });

  it('ignores orders for attempts that were never created', async () => {
    const store = await make();
    const space = freshSpace();
    await store.orderCancel(space, attempt(0));
    await store.markLost(space, attempt(0), at(1));
    expect(await store.all(space)).toEqual({ attempts: [], results: [], replicas: [] });
  });
}

function describeResults(make: () => AttemptStore | Promise<AttemptStore>): void {
  it('lets exactly one of twenty attempts of a task win, and repeats its answer', async () => {
    const store = await make();
    const space = freshSpace();
    const results = Array.from({ length: 20 }, (_, number) =>
      resultOf(attempt(3, number), at(5), { bytesOut: number }),
    );
    const answers = await Promise.all(results.map((result) => store.commit(space, result)));
    expect(tally(answers)).toEqual({ won: 1, lost: 19 });
    expect(await Promise.all(results.map((result) => store.commit(space, result)))).toEqual(answers);
    expect((await store.all(space)).results).toEqual([results[answers.indexOf('won')]]);
  });

  it('gives a partition index back exactly, beyond 4 GiB and for a thousand partitions', async () => {
    const store = await make();
    const space = freshSpace();
    const narrow = resultOf(attempt(0), at(1), {
      partitions: {
        lengths: Array.from({ length: 1_000 }, (_, index) => index * 4_000_000),
        crcs: Array.from({ length: 1_000 }, (_, index) => 0xffff_ffff - index),
      },
      counters: { skippedRecords: 3 },
    });
    const wide = resultOf(attempt(1), at(1), { partitions: { lengths: [0, 2 ** 40 + 1], crcs: [0, 1] } });
    await store.commit(space, narrow);
    await store.commit(space, wide);
    const { results } = await store.all(space);
    expect(results.toSorted((a, b) => (a.taskId < b.taskId ? -1 : 1))).toEqual([narrow, wide]);
  });

  it('gives final parts back exactly: empty, inline, small, of 10,000 parts, numbered with gaps, with strange etags', async () => {
    const store = await make();
    const space = freshSpace();
    const upload = (count: number, etag: (number: number) => string, number = (at: number) => at + 1) => ({
      kind: 'upload' as const,
      uploadId: 'u'.repeat(120),
      sizeBytes: 123,
      parts: Array.from({ length: count }, (_, at) => ({ number: number(at), etag: etag(at + 1) })),
    });
    const sum = (number: number): string =>
      `"${Math.imul(number, 0x9e3779b1).toString(16).replace('-', '').padStart(32, 'f')}"`;
    const finals = [
      { kind: 'inline', body: Uint8Array.from({ length: 4_096 }, (_, index) => index % 256) } as const,
      { kind: 'inline', body: new Uint8Array([10]) } as const,
      { kind: 'empty' as const },
      upload(1, () => `"${'0a'.repeat(16)}"`),
      upload(10_000, sum),
      upload(9_000, sum, (at) => (at < 1_000 ? 2 * at + 1 : at + 1_001)),
      upload(3, (number) => `etag ${number}`),
    ];
    const results = finals.map((final, index) => resultOf(attempt(index), at(1), { final }));
    for (const result of results) await store.commit(space, result);
    const stored = (await store.all(space)).results;
    expect(stored.toSorted((a, b) => (a.taskId < b.taskId ? -1 : 1))).toEqual(results);
  });
}

function describeReplicas(make: () => AttemptStore | Promise<AttemptStore>): void {
  const output = (attemptNumber: number, committedAt: number, bytesOut = 300) =>
    resultOf(attempt(3, attemptNumber), at(committedAt), {
      partitions: { lengths: [bytesOut, 0], crcs: [7, 0] },
      counters: { skippedRecords: attemptNumber },
      bytesOut,
    });

  it('keeps the outputs of attempts that come after the first, where they ask for it', async () => {
    const store = await make();
    const space = freshSpace();
    expect(await store.commit(space, output(0, 1))).toBe('won');
    expect(await store.commit(space, output(1, 2), 'replica')).toBe('kept');
    expect(await store.commit(space, output(2, 3))).toBe('lost');
    expect(await store.commit(space, output(3, 4), 'replica')).toBe('kept');
    const { attempts, results, replicas } = await store.all(space);
    expect(attempts).toEqual([]);
    expect(results).toEqual([output(0, 1)]);
    expect(byAttempt(replicas)).toEqual([output(1, 2), output(3, 4)]);
  });

  it('lets the first win that is ready to be a replica, and answers it the same again', async () => {
    const store = await make();
    const space = freshSpace();
    expect(await store.commit(space, output(1, 1), 'replica')).toBe('won');
    expect(await store.commit(space, output(1, 1), 'replica')).toBe('won');
    expect(await store.commit(space, output(1, 1))).toBe('won');
    expect(await store.all(space)).toEqual({
      attempts: [],
      results: [output(1, 1)],
      replicas: [],
    });
  });

  it('keeps an output once, as it was first recorded, however often it is committed', async () => {
    const store = await make();
    const space = freshSpace();
    await store.commit(space, output(0, 1));
    const answers = [
      await store.commit(space, output(1, 2), 'replica'),
      ...(await Promise.all(
        Array.from({ length: 10 }, (_, again) => store.commit(space, output(1, 3 + again, 999), 'replica')),
      )),
    ];
    expect(tally(answers)).toEqual({ kept: 11 });
    expect((await store.all(space)).replicas).toEqual([output(1, 2)]);
  });

  it('lets one of twenty win and keeps the others, whoever comes at once', async () => {
    const store = await make();
    const space = freshSpace();
    const outputs = Array.from({ length: 20 }, (_, number) => output(number, 5));
    const answers = await Promise.all(outputs.map((each) => store.commit(space, each, 'replica')));
    expect(tally(answers)).toEqual({ won: 1, kept: 19 });
    const { results, replicas } = await store.all(space);
    expect(results).toEqual([outputs[answers.indexOf('won')]]);
    expect(byAttempt(replicas)).toEqual(outputs.filter((_, index) => answers[index] === 'kept'));
  });

  it('never makes a result of a replica', async () => {
    const store = await make();
    const space = freshSpace();
    await store.commit(space, output(0, 1));
    await store.commit(space, output(1, 2), 'replica');
    expect(await store.commit(space, output(1, 2))).toBe('lost');
    expect(await store.commit(space, output(0, 1))).toBe('won');
    expect((await store.all(space)).results).toEqual([output(0, 1)]);
  });

  it('keeps nothing of attempts that were told to stop or given up: nobody would remove it', async () => {
    const store = await make();
    const space = freshSpace();
    const running = async (number: number): Promise<void> => {
      await store.create(space, attempt(3, number), at(1));
      await store.claim(space, attempt(3, number), PLACE, at(2));
    };
    for (const number of [1, 2, 3]) await running(number);
    await store.orderCancel(space, attempt(3, 1));
    await store.markLost(space, attempt(3, 2), at(3));
    await store.commit(space, output(0, 4));
    expect(await store.commit(space, output(1, 5), 'replica')).toBe('lost');
    expect(await store.commit(space, output(2, 5), 'replica')).toBe('lost');
    expect(await store.commit(space, output(3, 5), 'replica')).toBe('kept');
    expect((await store.all(space)).replicas).toEqual([output(3, 5)]);
  });

  it('lets one that was given up win all the same, and keeps what was kept before the order', async () => {
    const store = await make();
    const space = freshSpace();
    for (const number of [0, 1]) await store.create(space, attempt(3, number), at(1));
    await store.markLost(space, attempt(3, 0), at(2));
    expect(await store.commit(space, output(0, 3), 'replica')).toBe('won');
    expect(await store.commit(space, output(1, 4), 'replica')).toBe('kept');
    await store.orderCancel(space, attempt(3, 1));
    expect(await store.commit(space, output(1, 4), 'replica')).toBe('kept');
  });

  it('reads replicas by job', async () => {
    const store = await make();
    const space = freshSpace();
    await store.commit(space, output(0, 1));
    await store.commit(space, output(2, 30), 'replica');
    await store.commit(space, output(1, 20), 'replica');
    expect(byAttempt((await store.all(space)).replicas)).toEqual([output(1, 20), output(2, 30)]);
    expect((await store.all(freshSpace())).replicas).toEqual([]);
  });
}
