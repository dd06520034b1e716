import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32 } from '../../../src/lib/crc32.ts';

describe('crc32', () => {
  it('is the checksum of the standard check value', () => {
    expect(crc32(Buffer.from('123456789'))).toBe(0xcbf43926);
    expect(crc32(new Uint8Array())).toBe(0);
  });

  it('comes to what zlib has, in one piece and in two', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), fc.nat({ max: 500 }), (bytes, cut) => {
        expect(crc32(bytes.subarray(cut), crc32(bytes.subarray(0, cut)))).toBe(zlibCrc32(bytes));
      }),
    );
  });
});
