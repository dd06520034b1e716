import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

const meterOf = (peak = 0): AttemptMeter =>
  new AttemptMeter(new MemoryClock(), new AbortController().signal, () => peak);

const wrongNumber = (shown: string): string =>
  `count("lines", …): what is added must be a finite number, such as 1, not ${shown}`;
const wrongName = (shown: string): string =>
  `count: the name of a counter must be 1 to 100 characters of Unicode without control characters, not ${shown}`;
const range = 'the sum must be from -9007199254740991 to 9007199254740991, not';

describe('counters of a task', () => {
  it.each<[string, unknown, unknown, string]>([
    ['a value forgotten', 'lines', undefined, wrongNumber('undefined')],
    ['NaN', 'lines', NaN, wrongNumber('NaN')],
    ['Infinity', 'lines', Infinity, wrongNumber('Infinity')],
    ['-Infinity', 'lines', -Infinity, wrongNumber('-Infinity')],
    ['a text', 'lines', '1', wrongNumber('"1"')],
    ['a bigint', 'lines', 1n, wrongNumber('a bigint')],
    ['null', 'lines', null, wrongNumber('null')],
    ['an object', 'lines', {}, wrongNumber('a value of type object')],
    ['a number too large', 'lines', 2 ** 53, `count("lines", …): ${range} 9007199254740992`],
    [
      'the largest number',
      'lines',
      -Number.MAX_VALUE,
      `count("lines", …): ${range} -1.7976931348623157e+308`,
    ],
    ['no name', undefined, 1, wrongName('undefined')],
    ['an empty name', '', 1, wrongName('""')],
    ['a long name', 'x'.repeat(101), 1, wrongName(`"${'x'.repeat(40)}…"`)],
    ['half a character', 'a\ud800', 1, wrongName('"a\ufffd"')],
    ['a line end', 'a\nb', 1, wrongName('"a\\nb"')],
    ['a symbol', Symbol('s'), 1, wrongName('a value of type symbol')],
  ])('refuse %s and add nothing', (_, name, by, message) => {
    const meter = meterOf();
    expect(() => {
      meter.count(name, by);
    }).toThrow(expect.objectContaining({ name: 'UserCode', message }) as Error);
    expect(meter.counters()).toEqual({});
  });

  it('refuse a sum that leaves the range, and keep what was counted before', () => {
    const meter = meterOf();
    meter.count('lines', Number.MAX_SAFE_INTEGER);
    expect(() => {
      meter.count('lines', 1);
    }).toThrow(range);
    expect(meter.counters()).toEqual({ lines: 9007199254740991 });
  });

  it('refuse the name after the hundredth', () => {
    const meter = meterOf();
    for (let index = 0; index < 100; index++) meter.count(`n${String(index)}`, 1);
    expect(() => {
      meter.count('n100', 1);
    }).toThrow('count("n100", …): a task may count under at most 100 names');
    meter.count('n0', 1);
    expect(Object.keys(meter.counters())).toHaveLength(100);
    expect(meter.counters()['n0']).toBe(2);
  });

  it('keep those of the system beside a hundred, whichever come first', () => {
    const meter = meterOf();
    meter.count('skippedRecords', 1);
    for (let index = 0; index < 100; index++) meter.count(`n${String(index)}`, 1);
    meter.count('invalidUtf8Lines', 1);
    meter.count('halfCharacterRecords', 1);
    meter.count('skippedRecords', 1);
    expect(() => {
      meter.count('n100', 1);
    }).toThrow('count("n100", …): a task may count under at most 100 names');
    expect(meter.counters()).toMatchObject({ n99: 1, skippedRecords: 2, invalidUtf8Lines: 1 });
    expect(Object.keys(meter.counters())).toHaveLength(103);
  });

  it.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'x'.repeat(100), '行'])(
    'add up under the name %s',
    (name) => {
      const meter = meterOf();
      meter.count(name, 2);
      meter.count(name, 0.5);
      expect(Object.entries(meter.counters())).toEqual([[name, 2.5]]);
      expect(JSON.stringify(meter.counters())).toBe(`{${JSON.stringify(name)}:2.5}`);
    },
  );

  it('make 0 of -0', () => {
    const meter = meterOf();
    meter.count('lines', -0);
    expect(Object.is(meter.counters()['lines'], 0)).toBe(true);
  });

  it('fail the attempt as user code where they are refused, with nothing committed', async () => {
    const worker = new WorkerOfTest();
    const run = async (context: TaskContext): Promise<void> => {
      await Promise.resolve();
      context.count('lines', undefined as unknown as number);
    };
    expect(await worker.run({ run })).toBe('failed');
    expect(await worker.results()).toEqual([]);
    expect(await worker.attempt(attemptIdOf('work', 0, 0))).toMatchObject({
      state: 'failed',
      failure: { cause: 'user-code', message: wrongNumber('undefined') },
    });
  });
});

describe('progress', () => {
  it('is finite and not negative whatever was added up', () => {
    const meter = meterOf(NaN);
    meter.readsStages = true;
    meter.bytesRead = -1;
    meter.bytesTotal = Infinity;
    meter.recordsIn = NaN;
    meter.recordsOut = -Infinity;
    expect(meter.progress()).toEqual({
      bytesRead: 0,
      bytesTotal: 0,
      recordsIn: 0,
      recordsOut: 0,
      phase: 'init',
      phaseMs: { init: 0, read: 0, compute: 0, write: 0 },
      peakMemoryBytes: 0,
      fetched: { bytes: 0, ms: 0 },
    });
  });
});
