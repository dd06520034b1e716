import { describe, expect, it } from 'vitest';
import { withPartHeaders } from '../../../src/core/model/part-headers.ts';
import type { SourceObject } from '../../../src/core/model/splits.ts';

const csv = { format: 'csv', header: true } as const;
const field = 'stages[0].inputs[0]';
const object = (key: string, sizeBytes = 10): SourceObject => ({ bucket: 'data', key, sizeBytes, etag: key });
const headersOf = (keys: readonly (string | SourceObject)[], form: typeof csv | object = csv) =>
  withPartHeaders(
    keys.map((key) => (typeof key === 'string' ? object(key) : key)),
    { ...csv, ...form },
    field,
  ).map(({ headerIn }) => headerIn?.key);

describe('the part that has the header', () => {
  it('is the one numbered 0 of the same directory, wherever it stands in the input', () => {
    const keys = [
      'a/part-00001',
      'a/part-00000',
      'b/part-00000',
      'b/part-100000',
      'part-00000',
      'part-00002',
    ];
    expect(headersOf(keys)).toEqual([
      'a/part-00000',
      undefined,
      undefined,
      'b/part-00000',
      undefined,
      'part-00000',
    ]);
  });

  it('is, of files staged together, the last numbered 0 before it', () => {
    const names = ['0-part-00000', '1-part-00001', '2-part-00000', '3-part-00007', '4-x.csv'];
    expect(headersOf(names.map((name) => `input/3f/${name}`))).toEqual([
      undefined,
      'input/3f/0-part-00000',
      undefined,
      'input/3f/2-part-00000',
      undefined,
    ]);
  });

  it('is none of another directory where the first of staged files is empty', () => {
    const names = ['0-part-00000', '1-part-00001', '2-part-00000', '3-part-00001'];
    const sizes = [10, 10, 0, 10];
    expect(headersOf(names.map((name, index) => object(`input/3f/${name}`, sizes[index])))).toEqual([
      undefined,
      'input/3f/0-part-00000',
      undefined,
      undefined,
    ]);
  });

  it('is looked for by the name behind that of a packing', () => {
    expect(headersOf(['a/part-00000.gz', 'a/part-00001.gz'])).toEqual([undefined, 'a/part-00000.gz']);
  });

  it('is no matter to other names, other formats, empty parts, and parts of which the first is empty', () => {
    const others = [
      'a/part-00001-3f.csv',
      'a/part-1',
      'a/part-00001.csv',
      'a/0-part-00001',
      'a/part-r-00001',
    ];
    expect(headersOf(others)).toEqual(others.map(() => undefined));
    expect(headersOf(['a/part-00001'], { header: false })).toEqual([undefined]);
    expect(headersOf(['a/part-00001'], { format: 'ndjson' })).toEqual([undefined]);
    expect(headersOf([object('a/part-00001', 0)])).toEqual([undefined]);
    expect(headersOf([object('a/part-00000', 0), 'a/part-00001'])).toEqual([undefined, undefined]);
  });

  it('is asked for where it is missing', () => {
    expect(() => headersOf(['a/part-00000', 'b/part-00001'])).toThrow(
      /^stages\[0\]\.inputs\[0\]: s3:\/\/data\/b\/part-00001 has the name of a later part .* part-00000: name that too/,
    );
  });
});
