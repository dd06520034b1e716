import { describe, expect, it } from 'vitest';
import { operators } from '../../../src/operators/registry.ts';
import { BadRecordError } from '../../../src/worker/operator.ts';
import { failureOf } from '../../../src/worker/failure-of.ts';
import { runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

const sourceWith = (text: string): ReturnType<typeof sourceOf> => sourceOf(Buffer.from(text), seeded(1));
/** Halves of an odd number of letters: millions of ways to try, none of which fits. */
const hopeless = { pattern: '^(a*)(a*)(a*)\\3\\2\\1b$' };

describe('grep of what takes too long', () => {
  it.each([operators.grep, operators['grep-count']])(
    'names file, line and pattern, and is not tried again',
    async (operator) => {
      const text = `short\n${'a'.repeat(401)}b\nlast\n`;
      const error: unknown = await runTask(operator, hopeless, [sourceWith(text)]).catch(
        (cause: unknown) => cause,
      );
      expect(error).toBeInstanceOf(BadRecordError);
      const { cause, message } = failureOf(error, 'operator');
      // The job ends at the first attempt of a task that fails so.
      expect(cause).toBe('bad-record');
      expect(message).toContain('file: the line at byte 6: the pattern "^(a*)(a*)(a*)');
      expect(message).toContain('more than 2040200 steps');
    },
  );

  it.each([
    ['grep', { pattern: 'a.{900}c' }],
    ['grep-count', { pattern: 'c.{900}a|b{7}' }],
    ['grep', hopeless],
  ] as const)('stops within a line when it is told to: %s', async (name, options) => {
    let seed = 1;
    const letters = Array.from({ length: 400_000 }, () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return (seed >>> 16) % 2 === 0 ? 'a' : 'b';
    }).join('');
    const text = options === hopeless ? `${'a'.repeat(401)}b\n` : `${letters}\n`;
    const stop = new AbortController();
    setImmediate(() => {
      stop.abort(new Error('told to stop'));
    });
    await expect(
      runTask(operators[name], options, [sourceWith(text)], { signal: stop.signal }),
    ).rejects.toThrow('told to stop');
  });
});
