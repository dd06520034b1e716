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

  it('keeps what is no staged file, and tells one from another by its number', () => {
    const files = Array.from({ length: 12 }, (_, n) => ({ path: `/in/${String(n)}/a.txt`, sizeBytes: 1 }));
    const many = planStaging('data', files);
    const keyOf = (n: number): string => many.objects[n]?.key ?? '';
    expect(
      withLocalPaths(`${keyOf(1)}.gz s3://other/${keyOf(11)}. ${many.prefix}12-a.txt ${many.prefix}`, [
        set,
        many,
      ]),
    ).toBe(`/in/1/a.txt.gz s3://other//in/11/a.txt. ${many.prefix}12-a.txt ${many.prefix}`);
    expect(withLocalPaths(`s3://data/${keyOf(2)}s3://data/${keyOf(3)}`, [many])).toBe(
      '/in/2/a.txt/in/3/a.txt',
    );
  });

  it('costs a look-up for each name, however many files there are', () => {
    const files = Array.from({ length: 1_000 }, (_, n) => ({ path: `/in/${String(n)}`, sizeBytes: 1 }));
    const many = planStaging('data', files);
    let looks = 0;
    const objects = new Proxy(many.objects, {
      get: (target, name) => {
        looks += 1;
        return Reflect.get(target, name) as unknown;
      },
    });
    for (const { key } of many.objects) lineInLocalWords(`reading ${key}`, [{ ...many, objects }]);
    expect(looks).toBeLessThanOrEqual(3_000);
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
