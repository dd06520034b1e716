import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { BadInputError } from '../../../src/worker/operator.ts';
import { unpacked } from '../../../src/worker/unpacked.ts';

const text = Buffer.from(
  Array.from({ length: 20_000 }, (_, i) => `line ${String(i)} ${String((i * 7919) % 1000)}`).join('\n'),
);

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function unpack(bytes: Uint8Array, codec: 'gzip' | 'zstd' | 'bzip2', size = 1_000): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of unpacked(inChunks(bytes, size), codec, 'in/a')) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** What `bzip2` makes of "one\ntwo\n" and of "three\n", one after the other. */
const bzip2Streams = Buffer.from(
  'QlpoOTFBWSZTWacUK3cAAALBgAAQAgGEgCAAIYAMAjj1G4u5IpwoSFOKFbuAQlpoOTFBWSZTWQHHM2oAAALBgAAQAkAUACAAIYNBmgiwHF3JFOFCQAcczag=',
  'base64',
);
const skippable = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
const checked = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };

describe('compressed data', () => {
  it.each([7, 64, 100_000])(
    'are unpacked to their end, whatever follows what, in chunks of %i',
    async (size) => {
      const half = Math.floor(text.length / 2);
      const gzip = [gzipSync(text.subarray(0, half)), gzipSync(''), gzipSync(text.subarray(half))];
      expect(await unpack(Buffer.concat(gzip), 'gzip', size)).toBe(text.toString());
      const zstd = [
        skippable,
        zstdCompressSync(text.subarray(0, half), checked),
        skippable,
        zstdCompressSync(''),
      ];
      const frames = Buffer.concat([...zstd, zstdCompressSync(text.subarray(half)), skippable]);
      expect(await unpack(frames, 'zstd', size)).toBe(text.toString());
      expect(await unpack(bzip2Streams, 'bzip2', size)).toBe('one\ntwo\nthree\n');
    },
  );

  it.each([
    ['gzip', gzipSync(text)],
    ['zstd', zstdCompressSync(text, checked)],
    ['bzip2', bzip2Streams],
  ] as const)('are refused by the name of their file where they are not whole: %s', async (codec, whole) => {
    const middle = Buffer.from(whole);
    const place = Math.floor(middle.length / 3);
    middle[place] = (middle[place] ?? 0) ^ 0x55;
    const broken = [
      whole.subarray(0, -1),
      whole.subarray(0, 3),
      whole.subarray(0, whole.length >> 1),
      Buffer.concat([whole, Buffer.from('and more')]),
      Buffer.from('no such data at all'),
      middle,
    ];
    for (const bytes of broken) {
      await expect(unpack(bytes, codec)).rejects.toThrow(BadInputError);
      await expect(unpack(bytes, codec)).rejects.toThrow(`in/a: not whole ${codec} data: `);
    }
  });

  it.each([1, 7, 4_096, 1_000_000])(
    'may end with zeros, behind which there must be nothing, in chunks of %i',
    async (size) => {
      const zeros = Buffer.alloc(5_000);
      const [one, two] = [gzipSync('one\n'), gzipSync('two\n')];
      expect(await unpack(Buffer.concat([one, two, zeros]), 'gzip', size)).toBe('one\ntwo\n');
      const message = 'in/a: not whole gzip data: something follows the zeros behind its end';
      for (const more of [two, Buffer.from('and more')]) {
        await expect(unpack(Buffer.concat([one, zeros, more]), 'gzip', size)).rejects.toThrow(BadInputError);
        await expect(unpack(Buffer.concat([one, zeros, more]), 'gzip', size)).rejects.toThrow(message);
      }
    },
  );

  it('leaves an error of the source as it is', async () => {
    const failing = async function* (): AsyncGenerator<Uint8Array> {
      yield gzipSync(text).subarray(0, 100);
      throw new RangeError('no more');
    };
    const reading = async (): Promise<void> => {
      for await (const chunk of unpacked(failing(), 'gzip', 'in/a')) expect(chunk.length).toBeGreaterThan(0);
    };
    await expect(reading()).rejects.toThrow(RangeError);
  });
});
