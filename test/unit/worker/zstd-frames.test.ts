import { constants, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { zstdFrames } from '../../../src/worker/zstd-frames.ts';

const text = Buffer.from(Array.from({ length: 2_000 }, (_, i) => `line ${(i * 7919) % 1_000}\n`).join(''));
const plain = zstdCompressSync(text);
const checked = zstdCompressSync(text, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
const skippable = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function framesOf(bytes: Uint8Array, size: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of zstdFrames(inChunks(bytes, size))) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/* Without Node's decompressor, which may or may not see for itself that data end too soon. */
describe.each([1, 7, 64, 100_000])('frames that come in chunks of %i', (size) => {
  it.each<[string, Buffer]>([
    ['none', Buffer.alloc(0)],
    ['one', plain],
    ['one of no bytes', zstdCompressSync('')],
    ['several', Buffer.concat([skippable, checked, skippable, zstdCompressSync(''), plain])],
    ['a last one to skip', Buffer.concat([checked, skippable])],
  ])('are given whole: %s', async (_, whole) => {
    expect((await framesOf(whole, size)).equals(whole)).toBe(true);
  });

  it.each<[string, Buffer]>([
    ['its last byte', plain.subarray(0, -1)],
    ['some of its checksum', checked.subarray(0, -2)],
    ['all of its checksum', checked.subarray(0, -4)],
    ['half', plain.subarray(0, plain.length >> 1)],
    ['all but three bytes', plain.subarray(0, 3)],
    ['all but its magic number', plain.subarray(0, 4)],
    ['some of what is to be skipped', skippable.subarray(0, -1)],
    ['the size of what is to be skipped', skippable.subarray(0, 6)],
    ['half of a second frame', Buffer.concat([checked, plain.subarray(0, plain.length >> 1)])],
  ])('are refused where one lacks %s', async (_, cut) => {
    await expect(framesOf(cut, size)).rejects.toThrow('it ends too soon');
  });
});
