import { describe, expect, it } from 'vitest';
import { job, read } from '../../../src/dataflow/index.ts';
import { atPlace, placeOf } from '../../../src/worker/user-code/record-place.ts';
import { runJob } from '../../../src/dataflow/testing.ts';

/** A job that reduces so many times, one after the other. */
function reducedTimes(times: number): unknown {
  let all = read.text();
  for (let round = 0; round < times; round++)
    all = all
      .keyBy((line) => line)
      .reduce((line) => line)
      .map(([line]) => line);
  return job('x', all.write.text());
}

/** What a program without types may give. */
const untyped: () => unknown = () => Promise.resolve(1);

class Point {
  readonly x = 1;
}

describe('what is refused', () => {
  const source = read.text();
  const run = (build: () => ReturnType<typeof job>) => async () => runJob(build(), ['a']);
  it.each<[string, () => Promise<unknown>, RegExp]>([
    [
      'a key that is none',
      run(() =>
        job(
          'x',
          source
            .keyBy(() => new Date() as never)
            .reduce((a) => a)
            .write.ndjson(),
        ),
      ),
      /keyBy gave a Date as a key/,
    ],
    [
      'half a character',
      run(() => job('x', source.sortBy(() => '\ud800').write.ndjson())),
      /half a character/,
    ],
    [
      'a class of its own',
      run(() =>
        job(
          'x',
          source
            .map(() => new Point())
            .sortBy(() => 1)
            .write.ndjson(),
        ),
      ),
      /holds a Point, which cannot go to another stage/,
    ],
    [
      'a function',
      run(() =>
        job(
          'x',
          source
            .map(() => ({ f: () => 1 }))
            .sortBy(() => 1)
            .write.ndjson(),
        ),
      ),
      /holds a function/,
    ],
    ['a promise', run(() => job('x', source.map(untyped).write.ndjson())), /must not be async/],
    [
      'a promise within a record that is written',
      run(() => job('x', source.map((id) => ({ id, pages: [{ page: untyped() }] })).write.ndjson())),
      /^write.ndjson got a record that holds a promise: functions of a job must not be async$/,
    ],
    [
      'a promise as a record that is written',
      run(() => job('x', source.flatMap(() => [untyped()]).write.ndjson())),
      /^write.ndjson got a record that holds a promise/,
    ],
    [
      'a text of flatMap',
      run(() => job('x', source.flatMap((() => 'abc') as never).write.ndjson())),
      /flatMap gave a string/,
    ],
    [
      'a number as text',
      run(() => job('x', source.map(() => 1 as unknown as string).write.text())),
      /write.text got a number/,
    ],
    [
      'an object as a cell',
      run(() => job('x', source.map(() => ({ a: {} })).write.csv(['a']))),
      /column a holds an object/,
    ],
    [
      'a column that is not there',
      async () =>
        runJob(
          job(
            'x',
            read
              .csv({ columns: ['a', 'b'] })
              .map(({ b }) => b)
              .write.text(),
          ),
          [{ a: '1', c: '2' }],
        ),
      /has no column "b": its columns are a, c/,
    ],
    [
      'an input that is missing',
      async () => runJob(job('x', read.text({ input: 'other' }).write.text()), ['a']),
      /no records were given for "other"/,
    ],
    [
      'an input that nothing reads',
      async () => runJob(job('x', source.write.text()), { input: ['a'], more: [] }),
      /nothing reads "more"/,
    ],
  ])('%s', async (_, act, message) => {
    await expect(act()).rejects.toThrow(message);
  });

  /** In each map task one value a key, so that a sum is made where values meet. */
  const values = ['a 1', 'b 2', 'a 3', 'b 4'];
  const keyed = source.map((line) => line.split(' ')).keyBy(([key = '']) => key);
  const later = <T>(value: T): T => Promise.resolve(value) as T;
  it.each<[string, () => ReturnType<typeof job>]>([
    ['reduce', () => job('x', keyed.reduce((left) => later(left)).write.ndjson())],
    [
      'aggregate (add)',
      () => job('x', keyed.aggregate({ zero: () => 0, add: (sum) => later(sum + 1) }).write.ndjson()),
    ],
    [
      'aggregate (add)',
      () =>
        job(
          'x',
          keyed
            .aggregate({ zero: () => 0, add: (sum) => later(sum + 1), merge: (a, b) => a + b })
            .write.ndjson(),
        ),
    ],
    [
      'aggregate (zero)',
      () => job('x', keyed.aggregate({ zero: () => later(0), add: (sum) => sum + 1 }).write.ndjson()),
    ],
    [
      'aggregate (merge)',
      () =>
        job(
          'x',
          keyed
            .aggregate({ zero: () => 0, add: (sum) => sum + 1, merge: (a, b) => later(a + b) })
            .write.ndjson(),
        ),
    ],
  ])('a promise of %s, also where nothing is handed on after it', async (step, build) => {
    await expect(runJob(build(), values, { tasks: 2 })).rejects.toThrow(
      `the function of ${step} returned a promise: functions of a job must not be async`,
    );
  });

  it('writes empty objects as what they are', async () => {
    const records = [{ id: 'a', map: new Map(), none: {}, text: '{}', list: [{}] }];
    const { text } = await runJob(job('x', source.flatMap(() => records).write.ndjson()), ['a']);
    expect(text).toBe('{"id":"a","map":{},"none":{},"text":"{}","list":[{}]}\n');
  });

  it('names the record whose key has half a character, though keys are held for a while', async () => {
    const keyed = source.keyBy((line) => (line === 'b' ? '\ud800' : line)).reduce((a) => a);
    const records = runJob(job('x', keyed.write.ndjson()), ['a', 'b', 'c'], { tasks: 1 });
    const error: unknown = await records.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: expect.stringContaining('half a character') as unknown });
    expect(placeOf(error)).toMatchObject({ kind: 'file', offset: 2 });
  });

  it.each<[string, () => ReturnType<typeof job>, string | undefined]>([
    [
      'what reduce has made of a key, by the key',
      () =>
        job(
          'x',
          source
            .map((line) => (line === 'b' ? new Point() : line))
            .keyBy(String)
            .reduce((a) => a)
            .write.ndjson(),
        ),
      'the sum of key "[object Object]"',
    ],
    [
      'one of the greatest records, which of them nobody knows any more',
      () =>
        job(
          'x',
          source
            .map((line) => (line === 'b' ? new Point() : line))
            .top(2, () => 1)
            .write.ndjson(),
        ),
      undefined,
    ],
  ])('does not blame the record that came last for %s', async (_, build, words) => {
    const error: unknown = await runJob(build(), ['a', 'b', 'c'], { tasks: 1 }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ message: expect.stringContaining('holds a Point') as unknown });
    expect(placeOf(error)).toEqual(words === undefined ? undefined : { kind: 'words', words });
  });

  it.each([
    [null, 'null was thrown, which is no error'],
    ['text', 'text'],
    [7, '7 was thrown, which is no error'],
  ])('tells that %j was thrown, with the place', (thrown, message) => {
    const place = { kind: 'words', words: 'key 1 of stage read' } as const;
    const error = atPlace(thrown, place);
    expect(error).toMatchObject({ message });
    expect(placeOf(error)).toEqual(place);
  });

  it.each<[string, () => unknown, RegExp]>([
    ['a name', () => job('Not A Name', source.write.text()), /name of a job/],
    ['no output', () => job('x', source as never), /end its graph with write/],
    ['a setting', () => job('x', source.write.text(), { dedline: '1m' } as never), /no setting dedline/],
    ['no function', () => source.map(undefined as never), /map must be given a function/],
    ['no columns', () => source.map(() => ({ a: 1 })).write.csv([]), /at least one/],
    ['too many stages', () => reducedTimes(25), /may have 20/],
    [
      'partitions',
      () => job('x', source.write.text(), { partitions: 20_000 }),
      /^the setting partitions of job x must be a whole number from 1 to 1000$/,
    ],
    ['a size of top', () => source.top(0, (a) => a), /whole number from 1/],
    ['paths and an input', () => read.text('a.txt', { input: 'b' }), /not both/],
  ])('%s', (_, act, message) => {
    expect(act).toThrow(message);
  });
});
