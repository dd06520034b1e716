import { describe, expect, it } from 'vitest';
import { failureOf } from '../../../src/worker/failure-of.ts';
import { UserCodeError } from '../../../src/worker/operator.ts';

/** An error whose property throws when it is read. */
function thorny(field: 'name' | 'message' | 'code'): Error {
  const error = new Error('hidden');
  Object.defineProperty(error, field, {
    get() {
      throw new Error('no');
    },
  });
  return error;
}

const named = (name: unknown): Error => Object.assign(new Error('text'), { name });

function cyclic(): Error {
  const error = new Error('round');
  error.cause = error;
  return error;
}

describe('what user code throws', () => {
  it.each<[string, unknown, string]>([
    ['undefined', undefined, 'undefined was thrown, which is no error'],
    ['null', null, 'null was thrown, which is no error'],
    ['a number', NaN, 'NaN was thrown, which is no error'],
    ['a symbol', Symbol('s'), 'Symbol(s) was thrown, which is no error'],
    ['a bigint', 7n, '7 was thrown, which is no error'],
    ['a text', 'broken', 'broken'],
    ['an empty text', '', 'failed without a message'],
    ['an object', { code: 7 }, '{"code":7}'],
    ['an object with a message', { message: 'mine' }, 'mine'],
    ['an object without a prototype', Object.create(null), 'something that cannot be shown was thrown'],
    [
      'an object whose toString throws',
      { toString: () => expect.fail('no') },
      'something that cannot be shown was thrown',
    ],
    [
      'an object whose toString gives no text',
      { toString: () => ({}) },
      'something that cannot be shown was thrown',
    ],
    ['a revoked proxy', revoked(), 'something that cannot be shown was thrown'],
    ['an error whose message throws', thorny('message'), 'failed without a message'],
    ['an error whose name throws', thorny('name'), 'hidden'],
    ['an error whose code throws', thorny('code'), 'hidden'],
    [
      'an error whose message is no text',
      Object.assign(new Error(), { message: 7 }),
      'failed without a message',
    ],
    ['an error whose name is no text', named({}), 'text'],
    ['an error that is its own cause', cyclic(), 'round'],
    ['lines', new Error('one\r\n  two\u2028three\u0000four'), 'one two three four'],
    ['half a character', new Error('a\ud800b'), 'a\ufffdb'],
    ['a type error', new TypeError('x is not a function'), 'TypeError: x is not a function'],
  ])('%s becomes one line', (_, thrown, message) => {
    expect(failureOf(thrown, 'operator')).toEqual({ cause: 'user-code', message });
  });

  it.each(['constructor', '__proto__', 'toString', 'hasOwnProperty'])(
    'takes an error named %s for no cause',
    (name) => {
      expect(failureOf(named(name), 'operator')).toEqual({ cause: 'user-code', message: `${name}: text` });
    },
  );

  it.each([
    ['a', 10_000_000, 999],
    ['\n', 10_000_000, 0],
    ['\ud83d\ude00', 5_000_000, 999],
  ])('cuts a message of many %j', (piece, count) => {
    const { message } = failureOf(new Error(`begin${piece.repeat(count)}`), 'operator');
    expect(message.length).toBeLessThanOrEqual(1_000);
    expect(message.startsWith('begin')).toBe(true);
    expect(message.isWellFormed()).toBe(true);
    expect(message).not.toContain('\n');
  });

  it('cuts a long name', () => {
    const { message } = failureOf(named('N'.repeat(5_000)), 'operator');
    expect(message).toBe(`${'N'.repeat(100)}: text`);
  });

  it('is the fault of user code wherever it is noticed', () => {
    expect(failureOf(new UserCodeError('count: …'), 'runtime')).toEqual({
      cause: 'user-code',
      message: 'count: …',
    });
  });
});

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
