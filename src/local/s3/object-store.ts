import { createHash, randomUUID } from 'node:crypto';
import { renameSync } from 'node:fs';
import { link, mkdir, readdir, readFile, rename, rm, rmdir, stat, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import * as z from 'zod';
import { hasErrorCode, noSuchKey, preconditionFailed, S3Error } from './errors.ts';
import { KeyIndex } from './key-index.ts';
import { KeyedLock } from './keyed-lock.ts';
import { openObjectFile, readMetaSync, TornFileError } from './object-file.ts';
import type { ObjectMeta, OpenObject } from './object-file.ts';
import { ScratchSpace } from './scratch-space.ts';
import type { ScratchFile } from './scratch-space.ts';
import { sweepUploads } from './upload-store.ts';

/** What must hold of the present object for a write to happen. ETags without quotes. */
export interface WriteCondition {
  readonly ifNoneMatchAny?: boolean;
  readonly ifMatch?: string;
}

/** A bucket's place on disk, its keys, and when it was made. */
export interface Bucket {
  readonly name: string;
  readonly dir: string;
  readonly createdMs: number;
  readonly index: KeyIndex;
}

const BUCKET_FILE = 'bucket.json';
const bucketFileSchema = z.object({ createdMs: z.number() });

/**
 * Buckets and objects on a directory. A key's file is named by its hash, so a key may hold anything.
 *
 * Reads go to the disk, and `If-None-Match: *` is an exclusive link, so both also hold between
 * two processes on one directory. `If-Match` is atomic among the writers of one process only,
 * and a listing shows another process's objects after a restart.
 */
export class ObjectStore {
  readonly scratch: ScratchSpace;
  /** One completion or abort of an upload at a time, by upload id. */
  readonly uploadLocks = new KeyedLock();
  private readonly bucketsDir: string;
  private readonly buckets = new Map<string, Bucket>();
  private readonly locks = new KeyedLock();
  private readonly torn: string[] = [];

  private constructor(bucketsDir: string, scratch: ScratchSpace) {
    this.bucketsDir = bucketsDir;
    this.scratch = scratch;
  }

  /**
   * Opens, or makes, the store in `rootDir`: sweeps what a crash left and reads all keys. Objects whose files are not whole
   * are lost: the files are set aside in `torn` of their bucket.
   */
  static async open(rootDir: string): Promise<ObjectStore> {
    const bucketsDir = join(rootDir, 'buckets');
    await mkdir(bucketsDir, { recursive: true });
    const store = new ObjectStore(bucketsDir, await ScratchSpace.open(join(rootDir, 'scratch')));
    for (const name of await readdir(bucketsDir)) {
      const bucket = await store.loadBucket(name);
      if (bucket !== undefined) await sweepUploads(bucket);
    }
    return store;
  }

  /** Makes a bucket; answers false if it was there. */
  async createBucket(name: string, createdMs: number): Promise<boolean> {
    if ((await this.findBucket(name)) !== undefined) return false;
    return await this.locks.run(`bucket ${name}`, async () => {
      if (this.buckets.has(name)) return false;
      const dir = join(this.bucketsDir, name);
      await mkdir(join(dir, 'uploads'), { recursive: true });
      await mkdir(join(dir, 'objects'), { recursive: true });
      // Where its note was lost, as between a crash and its repair, its objects are there.
      const index = new KeyIndex();
      index.load(await this.readKeys(dir));
      await writeNote(dir, createdMs);
      this.buckets.set(name, { name, dir, createdMs, index });
      return true;
    });
  }

  /** @throws {S3Error} NoSuchBucket, BucketNotEmpty. */
  async deleteBucket(name: string): Promise<void> {
    const bucket = await this.bucket(name);
    await this.locks.run(`bucket ${name}`, async () => {
      const uploads = await readdir(join(bucket.dir, 'uploads'));
      if (bucket.index.size > 0 || uploads.length > 0) throw bucketNotEmpty();
      try {
        // rmdir, not a recursive rm: an object that another process put must stop this. Once the directory of all is
        // gone, nothing can be put.
        const objectsDir = join(bucket.dir, 'objects');
        for (const part of await readdir(objectsDir)) await rmdir(join(objectsDir, part));
        await rmdir(objectsDir);
      } catch (error) {
        throw hasErrorCode(error, 'ENOTEMPTY') ? bucketNotEmpty() : error;
      }
      this.buckets.delete(name);
      await rm(bucket.dir, { recursive: true, force: true });
    });
  }

  /** Where files lie by now that were not whole when they were read. */
  get setAside(): readonly string[] {
    return this.torn;
  }

  /** All buckets by name. */
  listBuckets(): readonly Bucket[] {
    return [...this.buckets.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** @throws {S3Error} NoSuchBucket. */
  async bucket(name: string): Promise<Bucket> {
    const bucket = await this.findBucket(name);
    if (bucket === undefined) throw new S3Error(404, 'NoSuchBucket', 'The specified bucket does not exist');
    return bucket;
  }

  /**
   * Opens an object for reading.
   *
   * @throws {S3Error} NoSuchKey.
   */
  async openObject(bucket: Bucket, key: string): Promise<OpenObject> {
    try {
      return await openObjectFile(objectPath(bucket, key));
    } catch (error) {
      throw hasErrorCode(error, 'ENOENT') ? noSuchKey() : error;
    }
  }

  /** What is known of an object, or `undefined` if there is none. */
  async findMeta(bucket: Bucket, key: string): Promise<ObjectMeta | undefined> {
    try {
      const { meta, handle } = await openObjectFile(objectPath(bucket, key));
      await handle.close();
      return meta;
    } catch (error) {
      if (hasErrorCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  /**
   * Publishes a finished file as the object `meta.key`, at one instant, if the condition holds then.
   * The file is gone from scratch afterwards, whether published or not.
   *
   * @throws {S3Error} PreconditionFailed; NoSuchKey for `ifMatch` where there is no object.
   */
  async publish(
    bucket: Bucket,
    file: ScratchFile,
    meta: ObjectMeta,
    condition: WriteCondition,
  ): Promise<void> {
    const path = objectPath(bucket, meta.key);
    try {
      await this.locks.run(path, async () => {
        await this.checkIfMatch(bucket, meta.key, condition);
        await inItsDirectory(path, () =>
          condition.ifNoneMatchAny === true ? linkOnce(file.path, path) : rename(file.path, path),
        );
        bucket.index.set(meta.key, meta);
      });
    } finally {
      await file.discard();
    }
  }

  /**
   * As {@link publish}, of a file in scratch space that nobody writes to any more, and whatever is there. At once, since
   * thousands may come in a row.
   */
  async publishPath(bucket: Bucket, from: string, meta: ObjectMeta): Promise<void> {
    const path = objectPath(bucket, meta.key);
    await this.locks.run(path, async () => {
      await inItsDirectory(path, () => {
        renameSync(from, path);
      });
      bucket.index.set(meta.key, meta);
    });
  }

  /** Removes an object; an absent one is no error, unless `ifMatch` asks for it. */
  async deleteObject(bucket: Bucket, key: string, condition: WriteCondition): Promise<void> {
    const path = objectPath(bucket, key);
    await this.locks.run(path, async () => {
      await this.checkIfMatch(bucket, key, condition);
      try {
        await unlink(path);
      } catch (error) {
        if (!hasErrorCode(error, 'ENOENT')) throw error;
      }
      bucket.index.delete(key);
    });
  }

  /** Gives up the scratch space; files under way must have ended. */
  close(): void {
    this.scratch.close();
  }

  private async checkIfMatch(bucket: Bucket, key: string, condition: WriteCondition): Promise<void> {
    if (condition.ifMatch === undefined) return;
    const present = await this.findMeta(bucket, key);
    if (present === undefined) throw noSuchKey();
    if (condition.ifMatch !== '*' && present.etag !== condition.ifMatch) throw preconditionFailed('If-Match');
  }

  private async findBucket(name: string): Promise<Bucket | undefined> {
    return this.buckets.get(name) ?? (isBucketName(name) ? await this.loadBucket(name) : undefined);
  }

  private async loadBucket(name: string): Promise<Bucket | undefined> {
    return await this.locks.run(`bucket ${name}`, async () => {
      const known = this.buckets.get(name);
      if (known !== undefined) return known;
      const dir = join(this.bucketsDir, name);
      let text: string;
      try {
        text = await readFile(join(dir, BUCKET_FILE), 'utf8');
      } catch (error) {
        // Without the file, its creation was cut short, and nobody was told of the bucket.
        if (hasErrorCode(error, 'ENOENT')) return undefined;
        throw error;
      }
      // Missing where a removal of the bucket was cut short.
      await mkdir(join(dir, 'uploads'), { recursive: true });
      await mkdir(join(dir, 'objects'), { recursive: true });
      const createdMs = createdIn(text) ?? (await this.noteAnew(dir));
      const bucket = { name, dir, createdMs, index: new KeyIndex() };
      bucket.index.load(await this.readKeys(dir));
      this.buckets.set(name, bucket);
      return bucket;
    });
  }

  private async readKeys(bucketDir: string): Promise<(readonly [string, ObjectMeta])[]> {
    const found: (readonly [string, ObjectMeta])[] = [];
    const objectsDir = join(bucketDir, 'objects');
    for (const part of await readdir(objectsDir)) {
      for (const name of await readdir(join(objectsDir, part))) {
        const path = join(objectsDir, part, name);
        try {
          const meta = readMetaSync(path);
          found.push([meta.key, meta]);
        } catch (error) {
          if (!(error instanceof TornFileError)) throw error;
          await this.putAside(bucketDir, path);
        }
      }
    }
    return found;
  }

  /** Writes the note of a bucket whose own one is torn, and answers when the bucket was made, as far as that can be told. */
  private async noteAnew(dir: string): Promise<number> {
    const createdMs = Math.floor((await stat(dir)).birthtimeMs);
    await writeNote(dir, createdMs);
    return createdMs;
  }

  private async putAside(bucketDir: string, path: string): Promise<void> {
    const tornDir = join(bucketDir, 'torn');
    await mkdir(tornDir, { recursive: true });
    const aside = join(tornDir, `${basename(path)}.${randomUUID()}`);
    await rename(path, aside);
    this.torn.push(aside);
  }
}

/** S3's rules for bucket names; they also keep a name from meaning another directory. */
export function isBucketName(name: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]|\.(?!\.)){1,61}[a-z0-9]$/.test(name);
}

/** The file in which an object lies, if there is one. */
export function objectPath(bucket: Bucket, key: string): string {
  const hash = createHash('sha256').update(key).digest('hex');
  return join(bucket.dir, 'objects', hash.slice(0, 2), hash);
}

/**
 * Makes the directory of an object's file where its first object comes: to make and to remove hundreds of them took longer
 * than all else of a start.
 */
async function inItsDirectory(path: string, publish: () => Promise<void> | void): Promise<void> {
  try {
    await publish();
  } catch (error) {
    if (!hasErrorCode(error, 'ENOENT')) throw error;
    await mkdir(dirname(path)).catch((cause: unknown) => {
      if (!hasErrorCode(cause, 'EEXIST')) throw cause;
    });
    await publish();
  }
}

async function linkOnce(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    throw hasErrorCode(error, 'EEXIST') ? preconditionFailed('If-None-Match') : error;
  }
}

/** Writes a bucket's note, whole or not at all, in the place of one that is there. */
async function writeNote(dir: string, createdMs: number): Promise<void> {
  const path = join(dir, `${BUCKET_FILE}.new`);
  await writeFile(path, JSON.stringify({ createdMs }));
  await rename(path, join(dir, BUCKET_FILE));
}

/** When a bucket was made, by its note; undefined where that is torn. */
function createdIn(note: string): number | undefined {
  try {
    return bucketFileSchema.parse(JSON.parse(note)).createdMs;
  } catch {
    return undefined;
  }
}

function bucketNotEmpty(): S3Error {
  return new S3Error(409, 'BucketNotEmpty', 'The bucket you tried to delete is not empty');
}
