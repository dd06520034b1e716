import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** The checksum algorithms an object may carry, as header suffixes. */
export const CHECKSUM_ALGORITHMS = ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'] as const;

/** One of {@link CHECKSUM_ALGORITHMS}. */
export type ChecksumAlgorithm = (typeof CHECKSUM_ALGORITHMS)[number];

/** A running checksum; `digest` may be called once. */
export interface Checksum {
  update(data: Uint8Array): void;
  digest(): Buffer;
}

/** The algorithm of that name in any case, or `undefined`. */
export function checksumAlgorithm(name: string): ChecksumAlgorithm | undefined {
  const lower = name.toLowerCase();
  return CHECKSUM_ALGORITHMS.find((algorithm) => algorithm === lower);
}

/** Starts a checksum of nothing. */
export function startChecksum(algorithm: ChecksumAlgorithm): Checksum {
  switch (algorithm) {
    case 'crc32':
      return startCrc32();
    case 'crc32c':
      return startCrc32c();
    case 'crc64nvme':
      return startCrc64Nvme();
    case 'sha1':
    case 'sha256':
      return createHash(algorithm);
  }
}

function startCrc32(): Checksum {
  let value = 0;
  return {
    update(data) {
      value = crc32(data, value);
    },
    digest: () => bigEndian(value),
  };
}

/** Reversed polynomial of Castagnoli. */
const CRC32C_POLYNOMIAL = 0x82f63b78;

const crc32cTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ CRC32C_POLYNOMIAL : value >>> 1;
  return value;
});

function startCrc32c(): Checksum {
  let value = 0xffffffff;
  return {
    update(data) {
      let running = value;
      for (const byte of data) running = (running >>> 8) ^ (crc32cTable[(running ^ byte) & 0xff] ?? 0);
      value = running;
    },
    digest: () => bigEndian((value ^ 0xffffffff) >>> 0),
  };
}

/** Reversed polynomial of CRC-64/NVME; its values are kept as two 32-bit halves, since BigInt is slow. */
const CRC64_POLYNOMIAL = 0x9a6c9329ac4bc9b5n;

const crc64Tables = buildCrc64Tables();

function buildCrc64Tables(): { readonly high: Uint32Array; readonly low: Uint32Array } {
  const high = new Uint32Array(256);
  const low = new Uint32Array(256);
  for (let index = 0; index < 256; index++) {
    let value = BigInt(index);
    for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ CRC64_POLYNOMIAL : value >> 1n;
    high[index] = Number(value >> 32n);
    low[index] = Number(value & 0xffffffffn);
  }
  return { high, low };
}

function startCrc64Nvme(): Checksum {
  let high = 0xffffffff;
  let low = 0xffffffff;
  return {
    update(data) {
      for (const byte of data) {
        const index = (low ^ byte) & 0xff;
        low = (((low >>> 8) | (high << 24)) ^ (crc64Tables.low[index] ?? 0)) >>> 0;
        high = ((high >>> 8) ^ (crc64Tables.high[index] ?? 0)) >>> 0;
      }
    },
    digest: () => Buffer.concat([bigEndian(~high >>> 0), bigEndian(~low >>> 0)]),
  };
}

function bigEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
