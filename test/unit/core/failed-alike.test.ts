import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FailureCause } from '../../../src/contracts/records.ts';
import { failureCauses } from '../../../src/contracts/records.ts';
import {
  areAlike,
  type FailedAttempt,
  hasFailedAlike,
  normalizedMessage,
} from '../../../src/core/model/failed-alike.ts';
import type { AttemptView } from '../../../src/core/model/job-view.ts';

const of = (cause: FailureCause, message: string, node = 'a'): FailedAttempt => ({
  failure: { cause, message },
  node,
});
const has = (attempts: readonly FailedAttempt[], nodes: readonly string[]): boolean => {
  const views = attempts as readonly AttemptView[];
  const last = views.at(-1);
  if (last === undefined) throw new Error('no attempt');
  return hasFailedAlike({ attempts: [...views] }, last, new Map(nodes.map((node) => [node, {}])));
};

describe('failures of one task', () => {
  it.each<[string, FailedAttempt, FailedAttempt, boolean]>([
    [
      'the same message',
      of('user-code', 'x is not a function'),
      of('user-code', 'x is not a function'),
      true,
    ],
    ['another message', of('user-code', 'x'), of('user-code', 'y'), false],
    ['another place', of('user-code', 'wrong sum at byte 7'), of('user-code', 'wrong sum at byte 9'), false],
    ['another cause', of('user-code', 'x'), of('internal', 'x'), false],
    [
      'the attempt in a path',
      of('user-code', 'no /tmp/attempt-aB3xY9/code'),
      of('user-code', 'no /tmp/attempt-Zz0_Q1/code'.replace('_', '9')),
      true,
    ],
    [
      'the attempt in a key',
      of('internal', 'bad jobs/j/data/5c/map/3/0'),
      of('internal', 'bad jobs/j/data/0f/map/3/1'),
      true,
    ],
    [
      'the task in a key',
      of('internal', 'bad jobs/j/data/5c/map/3/0'),
      of('internal', 'bad jobs/j/data/5c/map/4/0'),
      false,
    ],
    [
      'an id',
      of('user-code', 'request 0b8f1c9e-0000-4000-8000-aaaaaaaaaaaa'),
      of('user-code', 'request 1b8f1c9e-0000-4000-8000-bbbbbbbbbbbb'),
      true,
    ],
    [
      'a time of day',
      of('user-code', 'at 2026-01-02T03:04:05.678Z'),
      of('user-code', 'at 2026-01-02T04:05:06Z'),
      true,
    ],
    ...(
      [
        [
          'a time as loggers write it',
          '2026-01-02 03:04:05,678 ERROR bad line 7',
          '2026-01-02 03:04:07,1 ERROR bad line 7',
        ],
        [
          'a time in an access log',
          '[02/Jan/2026:03:04:05 +0000] bad line 7',
          '[02/Jan/2026:03:04:09 +0000] bad line 7',
        ],
        ['a clock', '03:04:05.678 bad line 7', '03:05:06.1 bad line 7'],
        ['a time in words', 'Fri Jan  2 03:04:05 2026: bad line 7', 'Sat Jan  3 13:04:06 2026: bad line 7'],
        ['seconds since 1970', '1767322800.123 bad line 7', '1767322811.5 bad line 7'],
        ['milliseconds since 1970', 'at 1767322800123: bad line 7', 'at 1767322811501: bad line 7'],
        ['how long it took', 'bad line 7 after 12.5ms (2 seconds)', 'bad line 7 after 9 ms (13 seconds)'],
        ['a process as syslog has it', 'parse[123]: bad line 7', 'parse[4567]: bad line 7'],
        ['a process as Node has it', '(node:123) bad line 7', '(node:4567) bad line 7'],
        ['a process as shells have it', 'run.sh: line 3: 123 Killed ./x', 'run.sh: line 3: 98765 Killed ./x'],
        ['a process as V8 has it', '[123:0x5f0]  51 ms: Scavenge', '[99:0x6f0]  613 ms: Scavenge'],
        ['a file of mkstemp', 'no line in /tmp/tmpab12_x9z', 'no line in /tmp/tmpzz98q_1a'],
        ['a file of mktemp', 'no line in /tmp/tmp.aB3dE6gH9j', 'no line in /tmp/tmp.Zz8dE6gH1k'],
        ['a port', 'connect 127.0.0.1:40123 says no', 'connect 127.0.0.1:51234 says no'],
        ['a request of AWS', 'no (RequestId: 4442587FB7D0A2F9)', 'no (RequestId: 1342587FB7D0A2FA)'],
      ] as const
    ).map(([what, first, second]): [string, FailedAttempt, FailedAttempt, boolean] => [
      what,
      of('user-code', first),
      of('user-code', second),
      true,
    ]),
    ...(
      [
        ['another line of a script', 'run.sh: line 3: bad', 'run.sh: line 4: bad'],
        ['another number of records', 'wants 12 fields, has 13', 'wants 12 fields, has 14'],
        ['another size', 'read 1048576 bytes', 'read 2097152 bytes'],
        ['another exit code', 'x ended with code 1', 'x ended with code 2'],
        ['another key', 'no such key: 2026-01-02', 'no such key: 2026-01-03'],
        ['another element', 'a[12] is missing', 'a[13] is missing'],
        ['another place in a file', 'f.csv:12:7: bad', 'f.csv:13:7: bad'],
        ['another file', 'no file tmpdata1', 'no file tmpdata2'],
      ] as const
    ).map(([what, first, second]): [string, FailedAttempt, FailedAttempt, boolean] => [
      what,
      of('user-code', first),
      of('user-code', second),
      false,
    ]),
    ['a fault of a store', of('storage', 'x'), of('storage', 'x'), false],
    ['a time-out', of('timeout', 'x'), of('timeout', 'x'), false],
    [
      'no answer',
      of('user-code', 'fetch failed: ECONNRESET'),
      of('user-code', 'fetch failed: ECONNRESET'),
      false,
    ],
    [
      'a full disk',
      of('internal', 'ENOSPC: no space left on device'),
      of('internal', 'ENOSPC: no space left on device'),
      false,
    ],
    [
      'a broken disk',
      of('user-code', 'EIO: i/o error, read'),
      of('user-code', 'EIO: i/o error, read'),
      false,
    ],
    [
      'a disk of which no more may be used',
      of('user-code', 'EDQUOT: disk quota exceeded, write'),
      of('user-code', 'EDQUOT: disk quota exceeded, write'),
      false,
    ],
    ['memory', of('out-of-memory', 'RangeError: x'), of('out-of-memory', 'RangeError: x'), true],
    ['no failure', { node: 'a' }, { node: 'b' }, false],
  ])('with %s', (_, first, second, expected) => {
    expect(areAlike(first, second)).toBe(expected);
    expect(areAlike(second, first)).toBe(expected);
  });

  it('count as two in two environments, and on one node only where no other is known', () => {
    const [onA, alsoOnA, onB] = [of('user-code', 'x'), of('user-code', 'x'), of('user-code', 'x', 'b')];
    expect(has([onA], ['a'])).toBe(false);
    expect(has([onA, onB], ['a', 'b'])).toBe(true);
    expect(has([onA, alsoOnA], ['a', 'b'])).toBe(false);
    expect(has([onA, alsoOnA], ['a'])).toBe(true);
    expect(has([onA, alsoOnA, onB], ['a', 'b'])).toBe(true);
    expect(has([onA, of('user-code', 'y', 'b')], ['a', 'b'])).toBe(false);
  });
});

const arbFailed = fc.record({
  failure: fc.record({
    cause: fc.constantFrom(...failureCauses),
    message: fc.oneof(fc.string(), fc.constantFrom('x', 'map/1/0', 'map/1/1')),
  }),
  node: fc.constantFrom('a', 'b', 'c'),
});

describe('the rule', () => {
  it('is symmetric, and does not depend on which attempts came first', () => {
    fc.assert(
      fc.property(fc.array(arbFailed, { minLength: 1, maxLength: 6 }), (attempts) => {
        const nodes = [...new Set(attempts.map(({ node }) => node))];
        for (const a of attempts) for (const b of attempts) expect(areAlike(a, b)).toBe(areAlike(b, a));
        const last = attempts.slice(-1);
        const others = attempts.slice(0, -1);
        expect(has([...others.toReversed(), ...last], nodes)).toBe(has([...others, ...last], nodes));
      }),
    );
  });

  it('never ends a task for faults that pass, nor for messages that differ', () => {
    fc.assert(
      fc.property(fc.array(arbFailed, { minLength: 1, maxLength: 6 }), (attempts) => {
        const passing = attempts.map((each) => ({
          ...each,
          failure: { ...each.failure, cause: 'storage' as const },
        }));
        expect(has(passing, ['a', 'b', 'c'])).toBe(false);
        const distinct = attempts.map((each, index) => ({
          ...each,
          failure: { ...each.failure, message: `line ${index}` },
        }));
        expect(has(distinct, ['a', 'b', 'c'])).toBe(false);
      }),
    );
  });

  it('normalizes once and for all', () => {
    fc.assert(
      fc.property(fc.string(), (message) => {
        expect(normalizedMessage(normalizedMessage(message))).toBe(normalizedMessage(message));
      }),
    );
  });
});
