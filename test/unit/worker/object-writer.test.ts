import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { StoreRefusedError, StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { UploadRef, UploadedPart } from '../../../src/ports/object-store.ts';
import { LostZoneError, ObjectWriter } from '../../../src/worker/object-writer.ts';
import { collect } from '../../support/worker-fixtures.ts';

const ref = { bucket: 'data', key: 'object' };
const part = 8 * 1024 * 1024;

/** Counts the parts under way, and fails those it is told to. */
class WatchedStore extends MemoryObjectStore {
  running = 0;
  most = 0;
  failing = 0;
  readonly sizes: number[] = [];

  override async uploadPart(upload: UploadRef, number: number, body: Uint8Array): Promise<UploadedPart> {
    this.running++;
    this.most = Math.max(this.most, this.running);
    await new Promise((resolve) => setImmediate(resolve));
    this.running--;
    this.sizes.push(body.length);
    if (number === this.failing) throw new StoreUnavailableError('no answer');
    // A copy: the caller may use its buffer again once this resolves.
    return super.uploadPart(upload, number, new Uint8Array(body));
  }
}

/** Bytes that differ from place to place. */
function pattern(sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  for (let at = 0; at + 4 <= sizeBytes; at += 4) bytes.writeUInt32LE(Math.imul(at, 2654435761) >>> 0, at);
  return bytes;
}

describe('ObjectWriter', () => {
  it('writes a small object in one request, and tells the checksum of each stretch', async () => {
    const objects = new WatchedStore();
    const writer = new ObjectWriter(objects, ref, { leaveUpload: false });
    const bytes = Buffer.from('one two three');
    await writer.append(bytes, 0, 4);
    expect(writer.takeChecksum()).toEqual({ lengthBytes: 4, crc: crc32('one ') });
    expect(writer.takeChecksum()).toEqual({ lengthBytes: 0, crc: 0 });
    await writer.append(bytes, 4, 13);
    expect(writer.takeChecksum()).toEqual({ lengthBytes: 9, crc: crc32('two three') });
    expect(await writer.finish()).toEqual({ kind: 'object', sizeBytes: 13 });
    expect(objects.sizes).toEqual([]);
    expect(Buffer.from(await objects.readAll(ref)).toString()).toBe('one two three');
  });

  it('sends large objects in parts, two at a time, with checksums across parts', async () => {
    const objects = new WatchedStore();
    const writer = new ObjectWriter(objects, ref, { leaveUpload: false });
    const bytes = pattern(4 * part + 12);
    const cut = part + 5;
    await writer.append(bytes, 0, cut);
    const first = writer.takeChecksum();
    for (let at = cut; at < bytes.length; at += 3_000_000) {
      await writer.append(bytes, at, Math.min(bytes.length, at + 3_000_000));
    }
    expect(first).toEqual({ lengthBytes: cut, crc: crc32(bytes.subarray(0, cut)) });
    expect(writer.takeChecksum()).toEqual({
      lengthBytes: bytes.length - cut,
      crc: crc32(bytes.subarray(cut)),
    });
    expect(await writer.finish()).toEqual({ kind: 'object', sizeBytes: bytes.length });
    expect(objects.most).toBe(2);
    expect(objects.sizes.toSorted((a, b) => a - b)).toEqual([12, part, part, part, part]);
    expect(Buffer.from(await objects.readAll(ref)).equals(bytes)).toBe(true);
  });

  it('throws what a part threw, and leaves nothing when it is discarded', async () => {
    const objects = new WatchedStore();
    objects.failing = 2;
    const writer = new ObjectWriter(objects, ref, { leaveUpload: false });
    const write = async (): Promise<void> => {
      for (let count = 0; count < 6; count++) await writer.append(pattern(part), 0, part);
      await writer.finish();
    };
    await expect(write()).rejects.toThrow('no answer');
    await writer.discard();
    expect(await collect(objects.listUploads({ bucket: 'data', key: '' }))).toEqual([]);
    expect(await objects.head(ref)).toBeUndefined();
  });

  it.each([100, part + 1])('removes an object of %i bytes that was written', async (sizeBytes) => {
    const objects = new WatchedStore();
    const writer = new ObjectWriter(objects, ref, { leaveUpload: false });
    await writer.append(pattern(sizeBytes), 0, sizeBytes);
    await writer.finish();
    await writer.discard();
    expect(await objects.head(ref)).toBeUndefined();
  });
});

describe('ObjectWriter in a zone that does not answer', () => {
  const zonal = { bucket: 'data--use1-az4--x-s3', key: 'object' };
  const options = { leaveUpload: false, fallback: ref };

  /** Answers nothing of the zone from the call on that is told; counts what was asked of it. */
  class LostZone extends WatchedStore {
    asked = 0;
    lostFrom = 1;

    private ask(bucket: string): void {
      if (bucket !== zonal.bucket) return;
      if (++this.asked >= this.lostFrom) throw new StoreUnavailableError('no answer');
    }

    override async write(...[place, ...rest]: Parameters<MemoryObjectStore['write']>) {
      this.ask(place.bucket);
      return super.write(place, ...rest);
    }

    override async beginUpload(...[place, ...rest]: Parameters<MemoryObjectStore['beginUpload']>) {
      this.ask(place.bucket);
      return super.beginUpload(place, ...rest);
    }

    override async uploadPart(...[upload, ...rest]: Parameters<MemoryObjectStore['uploadPart']>) {
      this.ask(upload.bucket);
      return super.uploadPart(upload, ...rest);
    }
  }

  it.each([
    ['one request', 13],
    ['parts', part + 13],
  ])('writes an object of %s elsewhere, says so, and asks that zone no more', async (_, sizeBytes) => {
    const objects = new LostZone();
    const bytes = pattern(sizeBytes);
    for (let round = 0; round < 2; round++) {
      const writer = new ObjectWriter(objects, zonal, options);
      await writer.append(bytes, 0, bytes.length);
      await writer.finish();
      expect(writer.bucket).toBe('data');
      expect(bytes.equals(await objects.readAll(ref))).toBe(true);
      expect(objects.asked).toBe(1);
    }
  });

  it('gives up an object of which parts are lost with the zone, by no fault of its own', async () => {
    const objects = new LostZone();
    objects.lostFrom = 2;
    const writer = new ObjectWriter(objects, zonal, options);
    const bytes = pattern(part + 13);
    await writer.append(bytes, 0, bytes.length);
    await expect(writer.finish()).rejects.toThrow(LostZoneError);
    const next = new ObjectWriter(objects, zonal, options);
    expect(next.bucket).toBe('data');
  });

  it.each(['uploadPart', 'completeUpload'] as const)(
    'tells what the zone refuses of an object (%s), which counts, and asks it no more',
    async (method) => {
      const objects = new MemoryObjectStore();
      const refusal = new StoreRefusedError('upload part was refused by S3: InvalidRequest: why');
      Object.assign(objects, { [method]: () => Promise.reject(refusal) });
      const writer = new ObjectWriter(objects, zonal, options);
      const bytes = pattern(part + 13);
      await writer.append(bytes, 0, bytes.length);
      await expect(writer.finish()).rejects.toBe(refusal);
      expect(new ObjectWriter(objects, zonal, options).bucket).toBe('data');
    },
  );
});
