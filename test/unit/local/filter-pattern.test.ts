import { describe, expect, it } from 'vitest';
import { parseFilterPattern } from '../../../src/local/logs/filter-pattern.ts';

describe('parseFilterPattern', () => {
  it.each([
    ['', 'anything', true],
    ['"words-0123"', '{"jobId":"words-0123"}', true],
    ['"words-0123"', '{"jobId":"words-0124"}', false],
    ['ERROR timeout', 'timeout … ERROR', true],
    ['ERROR timeout', 'ERROR', false],
    ['"-x"', 'a -x b', true],
    ['{ $.jobId = "a" }', '{"jobId":"a","x":1}', true],
    ['{ $.jobId = "a" }', '{"jobId":"b"}', false],
    ['{ $.jobId = "a" }', 'jobId a', false],
    ['{ $.job.id = "a" }', '{"job":{"id":"a"}}', true],
  ])('%s on %s: %s', (pattern, message, expected) => {
    expect(parseFilterPattern(pattern)(message)).toBe(expected);
  });

  it.each(['?a ?b', '-a', '%re%', '[a, b]', '{ $.x > 1 }'])(
    'refuses %s, which it would misread',
    (pattern) => {
      expect(() => parseFilterPattern(pattern)).toThrow(/supported/);
    },
  );
});
