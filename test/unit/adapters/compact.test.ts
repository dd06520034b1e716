import { expect, it } from 'vitest';
import { packFinalPart, unpackFinalPart } from '../../../src/adapters/aws/compact.ts';

const etag = `"${'0a'.repeat(16)}"`;
const upload = (numbers: readonly number[]) => ({
  kind: 'upload' as const,
  uploadId: 'u',
  sizeBytes: 5,
  parts: numbers.map((number) => ({ number, etag })),
});
const textOf = (packed: Uint8Array): string => Buffer.from(packed).toString('latin1');

it('packs the parts of an upload by their sums alone where their numbers have no gaps', () => {
  const packed = packFinalPart(upload([1, 2]));
  expect(textOf(packed)).toBe(`{"kind":"md5","uploadId":"u","sizeBytes":5,"first":1}\n${'\n'.repeat(32)}`);
  expect(unpackFinalPart(packed)).toEqual(upload([1, 2]));
});

it('packs each number with its sum where the numbers have gaps, as those of parts have that may be sent twice', () => {
  const packed = packFinalPart(upload([1, 4, 9_999]));
  // 9,999 is 0x270f.
  expect(textOf(packed)).toBe(
    `{"kind":"numbered","uploadId":"u","sizeBytes":5}\n\x01\0${'\n'.repeat(16)}\x04\0${'\n'.repeat(16)}\x0f\x27${'\n'.repeat(16)}`,
  );
  expect(unpackFinalPart(packed)).toEqual(upload([1, 4, 9_999]));
});
