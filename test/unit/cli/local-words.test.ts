import { describe, expect, it } from 'vitest';
import { lineInLocalWords, withLocalPaths } from '../../../src/cli/local-words.ts';
import { planStaging } from '../../../src/cli/staging.ts';

/** A name with all that a replacement, a pattern or JSON gives a meaning of its own. */
const path = '/home/me/odd in/q"$& $$ $1 \\back.txt';
const set = planStaging('data', [{ path, sizeBytes: 2 }]);
const key = set.objects[0]?.key ?? '';

describe('what a stack says of staged files', () => {
  it('names the files themselves, letter by letter', () => {
    expect(withLocalPaths(`reading s3://data/${key}, bytes 0 to 2; ${key}:7`, [set])).toBe(
      `reading ${path}, bytes 0 to 2; ${path}:7`,
    );
  });

  it('stays a line of JSON where it was one', () => {
    const said = { event: 'attempt-ended', failure: { message: `sh "failed" (reading s3://data/${key})` } };
    const text = lineInLocalWords(JSON.stringify(said), [set]);
    expect(JSON.parse(text)).toEqual({
      event: 'attempt-ended',
      failure: { message: `sh "failed" (reading ${path})` },
    });
    expect(lineInLocalWords(`not JSON: ${key}`, [set])).toBe(`not JSON: ${path}`);
  });
});
