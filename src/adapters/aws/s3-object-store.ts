import { randomUUID } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectsCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
  type UploadPartCommandInput,
} from '@aws-sdk/client-s3';
import { isDirectoryBucket } from '../../contracts/directory-buckets.ts';
import { ConflictError, InvalidInputError, StoreUnavailableError } from '../../contracts/errors.ts';
import { type ObjectRef, uriOf } from '../../contracts/keys.ts';
import {
  type ByteRange,
  type ObjectInfo,
  type ObjectMetadata,
  type ObjectStore,
  type ReadOptions,
  type UploadRef,
  type UploadedPart,
  mostWholeBytes,
} from '../../ports/object-store.ts';
import { archiveOf } from './archives.ts';
import { backoff } from './backoff.ts';
import { isDenialCode } from './denials.ts';
import { faultOf } from './faults.ts';
import { forEachBounded } from '../../lib/bounded.ts';
import { sendHedged } from './hedged-part.ts';
import { PartDigests } from './part-digests.ts';
import { RequestHedge } from './request-hedge.ts';
import { type PaceHost, ReadPace } from './read-pace.ts';
import { translate } from './s3-faults.ts';
import { type Reading, readObject } from './s3-read.ts';

const KEYS_PER_REMOVAL = 1_000;
const REMOVALS_AT_ONCE = 4;
const ATTEMPTS = 6;
const PAGE_LIMIT = 1_000_000;
/** Of bodies, where none hinders: S3 compares it, and it costs next to nothing. */
const CHECKSUM = 'CRC32';
/** Metadata by which a conditional write that the SDK repeats knows its own first delivery. */
const writeIdMetadata = 'outrider-write';

/** Longer than S3 takes to part a prefix for short bursts; workers have more. */
const PATIENCE_MS = 60_000;

export interface S3StoreOptions {
  /** Makes the reads, each request once: what S3 refuses is tried again here. The same client where nothing is said. */
  readonly reads?: S3Client;
  /** How long a read goes on that S3 refuses for its rate. */
  readonly patienceMs?: number;
  /** Is told of each read that is asked for a second time, since it is late. */
  readonly onHedge?: (ref: ObjectRef) => void;
  /**
   * Is told of each part that is sent a second time, since it is late. Absent: none is. Parts of directory buckets, which bear no
   * gaps between numbers, never are. The client must add no checksums of its own, as `s3HedgingClient`: neither do parts that
   * have one bear gaps.
   */
  readonly onHedgedPart?: (ref: ObjectRef) => void;
  /** Time and chance of tests. */
  readonly paceHost?: PaceHost;
  /**
   * Make the requests to directory buckets, giving up soon: no others, since the SDK signs all that a client asks as what it
   * asks first, for one kind of bucket. The same clients where nothing is said: then all buckets must be of one kind.
   * `silenceMs`: how long a read waits for more of an answer that has begun; as long as its client bears where it is not said.
   */
  readonly zonal?: { readonly client: S3Client; readonly reads: S3Client; readonly silenceMs?: number };
}

/** How long a read of a directory bucket goes on that gets no bytes: where its zone is lost others are to hear of it soon. */
const ZONAL_PATIENCE_MS = 5_000;

/** Objects in S3. */
export class S3ObjectStore implements ObjectStore {
  private readonly client: S3Client;
  private readonly zonalClient: S3Client;
  private readonly reading: Reading;
  private readonly zonalReading: Reading;
  private readonly writeHedge: RequestHedge;
  private readonly partDigests = new PartDigests();
  private readonly onHedgedPart: S3StoreOptions['onHedgedPart'];

  constructor(client: S3Client, options: S3StoreOptions = {}) {
    const {
      reads = client,
      patienceMs = PATIENCE_MS,
      paceHost,
      onHedge,
      onHedgedPart,
      zonal = { client, reads },
    } = options;
    this.client = client;
    this.zonalClient = zonal.client;
    this.writeHedge = new RequestHedge(paceHost);
    this.onHedgedPart = onHedgedPart;
    const [pace, hedge] = [new ReadPace(paceHost), new RequestHedge(paceHost)];
    this.reading = { client: reads, pace, patienceMs, hedge, onHedge };
    // Of their own pace: what a zone refuses slows no read of another place, and it is slow by itself.
    this.zonalReading = {
      client: zonal.reads,
      pace: new ReadPace(paceHost),
      patienceMs: Math.min(patienceMs, ZONAL_PATIENCE_MS),
      silenceMs: options.zonal?.silenceMs,
      hedge: new RequestHedge(paceHost),
      onHedge,
    };
  }

  private clientOf({ bucket }: Pick<ObjectRef, 'bucket'>): S3Client {
    return isDirectoryBucket(bucket) ? this.zonalClient : this.client;
  }

  read(ref: ObjectRef, options: ReadOptions = {}): AsyncIterable<Uint8Array> {
    return readObject(isDirectoryBucket(ref.bucket) ? this.zonalReading : this.reading, ref, options);
  }

  async readAll(ref: ObjectRef, range?: ByteRange, signal?: AbortSignal): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    const options = {
      ...(range === undefined ? {} : { range }),
      ...(signal === undefined ? {} : { signal }),
    };
    for await (const chunk of this.read(ref, options)) {
      sizeBytes += chunk.length;
      if (sizeBytes > mostWholeBytes) {
        throw new InvalidInputError('too large to be read whole', { uri: uriOf(ref), sizeBytes });
      }
      chunks.push(chunk);
    }
    // Memory of its own: a piece of Node's shared pool would hold all of it.
    const whole = new Uint8Array(sizeBytes);
    let at = 0;
    for (const chunk of chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }

  async head(ref: ObjectRef): Promise<(ObjectInfo & { readonly metadata: ObjectMetadata }) | undefined> {
    const found = await this.headRaw(ref);
    if (found === undefined) return undefined;
    const metadata = Object.entries(found.metadata).filter(([name]) => name !== writeIdMetadata);
    return { ...found, metadata: Object.fromEntries(metadata) };
  }

  async *list(ref: ObjectRef): AsyncIterable<ObjectInfo> {
    let token: string | undefined;
    for (let page = 0; page < PAGE_LIMIT; page++) {
      const command = new ListObjectsV2Command({
        Bucket: ref.bucket,
        Prefix: ref.key,
        ContinuationToken: token,
        // Keys may hold characters that XML cannot.
        EncodingType: 'url',
        // An archived object keeps its class while it is restored. Directory buckets have none, and take no such question.
        ...(isDirectoryBucket(ref.bucket) ? {} : { OptionalObjectAttributes: ['RestoreStatus'] }),
      });
      const answer = await this.call('list', ref, () => this.clientOf(ref).send(command));
      const decode = decoderOf(answer.EncodingType);
      for (const object of answer.Contents ?? []) {
        const { Key: key, Size: sizeBytes = 0, ETag: etag = '' } = object;
        if (key !== undefined) yield { key: decode(key), sizeBytes, etag, ...archiveOf(object) };
      }
      if (answer.NextContinuationToken === undefined) return;
      token = answer.NextContinuationToken;
    }
    throw new StoreUnavailableError('a listing did not end', { uri: uriOf(ref) });
  }

  async write(
    ref: ObjectRef,
    body: Uint8Array,
    options: { ifAbsent?: boolean; metadata?: ObjectMetadata } = {},
  ): Promise<'written' | 'exists'> {
    const ifAbsent = options.ifAbsent === true;
    const writeId = randomUUID();
    const command = new PutObjectCommand({
      Bucket: ref.bucket,
      Key: ref.key,
      Body: body,
      Metadata: { ...options.metadata, ...(ifAbsent ? { [writeIdMetadata]: writeId } : {}) },
      ChecksumAlgorithm: CHECKSUM,
      IfNoneMatch: ifAbsent ? '*' : undefined,
    });
    const outcome = await this.conditional('write', ref, () => this.clientOf(ref).send(command));
    if (outcome !== 'exists') return 'written';
    const there = await this.headRaw(ref);
    return there?.metadata[writeIdMetadata] === writeId ? 'written' : 'exists';
  }

  async copy(
    from: ObjectRef & Pick<ObjectInfo, 'etag'>,
    to: ObjectRef,
    signal?: AbortSignal,
  ): ReturnType<ObjectStore['copy']> {
    const command = new CopyObjectCommand({
      ...{ Bucket: to.bucket, Key: to.key, IfNoneMatch: '*' },
      CopySource: [from.bucket, ...from.key.split('/')].map(encodeURIComponent).join('/'),
      CopySourceIfMatch: from.etag,
    });
    // From a directory bucket, too, with the caller's own keys: a copy takes no session.
    const options = signal === undefined ? {} : { abortSignal: signal };
    const outcome = await this.conditional('copy', to, () => this.clientOf(to).send(command, options));
    if (outcome !== 'exists') return outcome === 'done' ? 'copied' : 'gone';
    if ((await this.headRaw(to)) !== undefined) return 'exists';
    // A source that is another by now is refused as a copy is that is there.
    throw new ConflictError('the object is another by now', { uri: uriOf(from) });
  }

  async remove(bucket: string, keys: readonly string[]): Promise<void> {
    const batches: string[][] = [];
    for (let at = 0; at < keys.length; at += KEYS_PER_REMOVAL)
      batches.push(keys.slice(at, at + KEYS_PER_REMOVAL));
    await forEachBounded(batches, REMOVALS_AT_ONCE, (batch) => this.removeBatch(bucket, batch));
  }

  async beginUpload(ref: ObjectRef, metadata: ObjectMetadata = {}): Promise<UploadRef> {
    const { bucket, key } = ref;
    const command = new CreateMultipartUploadCommand({
      ...{ Bucket: bucket, Key: key, Metadata: { ...metadata } },
      // Its parts will have one, which has to be named here. Other buckets bear that it is not, and parts without any.
      ...(isDirectoryBucket(bucket) ? { ChecksumAlgorithm: CHECKSUM } : {}),
    });
    const { UploadId: uploadId } = await this.call('begin upload', ref, () =>
      this.clientOf(ref).send(command),
    );
    if (uploadId === undefined) throw new StoreUnavailableError('S3 named no upload', { uri: uriOf(ref) });
    return { bucket, key, uploadId };
  }

  async uploadPart(upload: UploadRef, number: number, body: Uint8Array): Promise<UploadedPart> {
    const { onHedgedPart } = this;
    const part = { ...idOf(upload), Body: body };
    if (onHedgedPart === undefined || isDirectoryBucket(upload.bucket))
      return this.sendPart({ ...part, PartNumber: number, ChecksumAlgorithm: CHECKSUM });
    const onHedge = (): void => {
      onHedgedPart(upload);
    };
    const send = (as: number, signal: AbortSignal): Promise<UploadedPart> =>
      this.sendPart({ ...part, PartNumber: as }, signal);
    return sendHedged(number, send, { hedge: this.writeHedge, sizeBytes: body.length, onHedge });
  }

  private async sendPart(
    part: UploadPartCommandInput & { Bucket: string; Key: string; PartNumber: number; Body: Uint8Array },
    signal?: AbortSignal,
  ): Promise<UploadedPart> {
    const { Bucket: bucket, Key: key, PartNumber: number } = part;
    const ref = { bucket, key };
    const { ETag: etag, ChecksumCRC32: crc32 } = await this.call('upload part', ref, () =>
      this.partDigests.sending(part, (digest) =>
        this.clientOf(ref).send(
          new UploadPartCommand({ ...part, ...digest }),
          signal === undefined ? {} : { abortSignal: signal },
        ),
      ),
    );
    if (etag === undefined) throw new StoreUnavailableError('S3 gave no etag', { uri: uriOf(ref), number });
    return { number, etag, ...(isDirectoryBucket(bucket) && crc32 !== undefined ? { crc32 } : {}) };
  }

  async completeUpload(
    upload: UploadRef,
    parts: readonly UploadedPart[],
    options: { ifAbsent?: boolean } = {},
  ): Promise<'completed' | 'exists' | 'gone'> {
    const command = new CompleteMultipartUploadCommand({
      ...idOf(upload),
      MultipartUpload: {
        Parts: parts.map(({ number, etag, crc32 }) => ({
          ...{ PartNumber: number, ETag: etag },
          ...(crc32 === undefined ? {} : { ChecksumCRC32: crc32 }),
        })),
      },
      IfNoneMatch: options.ifAbsent === true ? '*' : undefined,
    });
    const outcome = await this.conditional('complete upload', upload, () =>
      this.clientOf(upload).send(command),
    );
    return outcome === 'done' ? 'completed' : outcome;
  }

  async abortUpload(upload: UploadRef): Promise<void> {
    await this.conditional('abort upload', upload, () =>
      this.clientOf(upload).send(new AbortMultipartUploadCommand(idOf(upload))),
    );
  }

  async *listUploads(ref: ObjectRef): AsyncIterable<UploadRef> {
    let marker: { KeyMarker?: string; UploadIdMarker?: string } = {};
    for (let page = 0; page < PAGE_LIMIT; page++) {
      const command = new ListMultipartUploadsCommand({
        Bucket: ref.bucket,
        Prefix: ref.key,
        EncodingType: 'url',
        ...marker,
      });
      const answer = await this.call('list uploads', ref, () => this.clientOf(ref).send(command));
      const decode = decoderOf(answer.EncodingType);
      for (const { Key: key, UploadId: uploadId } of answer.Uploads ?? []) {
        if (key !== undefined && uploadId !== undefined)
          yield { bucket: ref.bucket, key: decode(key), uploadId };
      }
      if (answer.IsTruncated !== true || answer.NextKeyMarker === undefined) return;
      marker = {
        KeyMarker: decode(answer.NextKeyMarker),
        ...(answer.NextUploadIdMarker === undefined ? {} : { UploadIdMarker: answer.NextUploadIdMarker }),
      };
    }
    throw new StoreUnavailableError('a listing did not end', { uri: uriOf(ref) });
  }

  private async headRaw(
    ref: ObjectRef,
  ): Promise<(ObjectInfo & { readonly metadata: ObjectMetadata }) | undefined> {
    try {
      const answer = await this.clientOf(ref).send(
        new HeadObjectCommand({ Bucket: ref.bucket, Key: ref.key }),
      );
      const { ContentLength: sizeBytes = 0, ETag: etag = '', Metadata: metadata = {} } = answer;
      return { key: ref.key, sizeBytes, etag, metadata, ...archiveOf(answer) };
    } catch (cause) {
      if (faultOf(cause).status === 404) return undefined;
      throw translate('head', ref, cause);
    }
  }

  private async removeBatch(bucket: string, keys: readonly string[]): Promise<void> {
    let rest = keys;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const command = new DeleteObjectsCommand({
        Bucket: bucket,
        Delete: { Quiet: true, Objects: rest.map((key) => ({ Key: key })) },
      });
      const answer = await this.call('remove', { bucket, key: rest[0] ?? '' }, () =>
        this.clientOf({ bucket }).send(command),
      );
      const refused = (answer.Errors ?? []).find(({ Code: code }) => isDenialCode(code ?? ''));
      if (refused !== undefined) {
        const { Key: key = '', Code: name = '', Message: message = '' } = refused;
        throw translate('remove', { bucket, key }, Object.assign(new Error(message), { name }));
      }
      rest = (answer.Errors ?? []).flatMap(({ Key: key, Code: code }) =>
        key === undefined || code === 'NoSuchKey' ? [] : [key],
      );
      if (rest.length === 0) return;
      await backoff(attempt);
    }
    throw new StoreUnavailableError('objects could not be removed', {
      bucket,
      keys: rest.length,
      first: rest[0],
    });
  }

  /** A write whose refusals are outcomes. 409 says that a rival's write is under way: its outcome decides. */
  private async conditional(
    operation: string,
    ref: ObjectRef,
    send: () => Promise<unknown>,
  ): Promise<'done' | 'exists' | 'gone'> {
    for (let attempt = 1; ; attempt++) {
      try {
        await send();
        return 'done';
      } catch (cause) {
        const { name, status } = faultOf(cause);
        if (status === 412) return 'exists';
        if (name === 'NoSuchUpload' || name === 'NoSuchKey') return 'gone';
        if (status !== 409 || attempt === ATTEMPTS) throw translate(operation, ref, cause);
        await backoff(attempt);
      }
    }
  }

  private async call<T>(operation: string, ref: ObjectRef, send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (cause) {
      throw translate(operation, ref, cause);
    }
  }
}

const idOf = ({ bucket, key, uploadId }: UploadRef) => ({ Bucket: bucket, Key: key, UploadId: uploadId });

const decoderOf = (encoding: string | undefined): ((text: string) => string) =>
  encoding === 'url' ? (text) => decodeURIComponent(text.replaceAll('+', ' ')) : (text) => text;
