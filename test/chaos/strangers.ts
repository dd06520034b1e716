import {
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';

interface StrangersObject {
  readonly bucket: string;
  readonly key: string;
  readonly body: string;
  readonly etag: string;
}

interface StrangersUpload {
  readonly bucket: string;
  readonly key: string;
  readonly uploadId: string;
  readonly etag: string;
}

/** Objects and uploads of others in the buckets that jobs write to: whatever happens, they must stay as they are. */
export class Strangers {
  readonly #client: S3Client;
  readonly #objects: StrangersObject[] = [];
  readonly #uploads: StrangersUpload[] = [];

  constructor(client: S3Client) {
    this.#client = client;
  }

  /** Puts an object where none is; false where one is. */
  async putObject(bucket: string, key: string): Promise<boolean> {
    const body = `of somebody else: ${key} ${String(this.#objects.length)}`;
    try {
      const { ETag = '' } = await this.#client.send(
        new PutObjectCommand({ Bucket: bucket, Key: key, Body: body, IfNoneMatch: '*' }),
      );
      this.#objects.push({ bucket, key, body, etag: ETag });
      return true;
    } catch (cause) {
      if (cause instanceof Error && cause.name === 'PreconditionFailed') return false;
      throw cause;
    }
  }

  /** Begins an upload, and uploads one part of it. */
  async beginUpload(bucket: string, key: string): Promise<void> {
    const place = { Bucket: bucket, Key: key };
    const { UploadId = '' } = await this.#client.send(new CreateMultipartUploadCommand(place));
    const { ETag = '' } = await this.#client.send(
      new UploadPartCommand({ ...place, UploadId, PartNumber: 1, Body: 'a part of somebody else' }),
    );
    this.#uploads.push({ bucket, key, uploadId: UploadId, etag: ETag });
  }

  /** Keys of theirs in a bucket under a prefix. */
  keysUnder(bucket: string, prefix: string): readonly string[] {
    return this.#objects
      .filter((each) => each.bucket === bucket && each.key.startsWith(prefix))
      .map(({ key }) => key);
  }

  get uploadIds(): ReadonlySet<string> {
    return new Set(this.#uploads.map(({ uploadId }) => uploadId));
  }

  /** What of theirs is not as they left it. */
  async harmed(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const each of this.#objects) {
      const problem = await this.#objectProblem(each);
      if (problem !== undefined) found.push(`object s3://${each.bucket}/${each.key} of others ${problem}`);
    }
    const listed = new Map<string, ReadonlySet<string>>();
    for (const each of this.#uploads) {
      const ids =
        listed.get(each.bucket) ??
        new Set(await this.uploadsIn(each.bucket).then((all) => all.map(({ uploadId }) => uploadId)));
      listed.set(each.bucket, ids);
      const problem = ids.has(each.uploadId) ? await this.#uploadProblem(each) : 'is gone';
      if (problem !== undefined) found.push(`upload to s3://${each.bucket}/${each.key} of others ${problem}`);
    }
    return found;
  }

  async #objectProblem({ bucket, key, body, etag }: StrangersObject): Promise<string | undefined> {
    try {
      const got = await this.#client.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
      const text = await got.Body?.transformToString();
      if (text !== body) return `holds ${JSON.stringify(text?.slice(0, 80))}`;
      return got.ETag === etag ? undefined : `has the etag ${String(got.ETag)} and not ${etag}`;
    } catch (cause) {
      return `cannot be read: ${String(cause)}`;
    }
  }

  async #uploadProblem({ bucket, key, uploadId, etag }: StrangersUpload): Promise<string | undefined> {
    const { Parts = [] } = await this.#client.send(
      new ListPartsCommand({ Bucket: bucket, Key: key, UploadId: uploadId }),
    );
    const etags = Parts.map((part) => part.ETag);
    return etags.length === 1 && etags[0] === etag ? undefined : `has the parts ${JSON.stringify(etags)}`;
  }

  /** Every upload that is open in a bucket. */
  async uploadsIn(bucket: string): Promise<readonly { readonly key: string; readonly uploadId: string }[]> {
    const found: { key: string; uploadId: string }[] = [];
    let at: { KeyMarker?: string; UploadIdMarker?: string } = {};
    for (let pages = 0; pages < 1_000; pages++) {
      const page = await this.#client.send(new ListMultipartUploadsCommand({ Bucket: bucket, ...at }));
      for (const { Key = '', UploadId = '' } of page.Uploads ?? [])
        found.push({ key: Key, uploadId: UploadId });
      if (page.IsTruncated !== true) break;
      at = {
        ...(page.NextKeyMarker === undefined ? {} : { KeyMarker: page.NextKeyMarker }),
        ...(page.NextUploadIdMarker === undefined ? {} : { UploadIdMarker: page.NextUploadIdMarker }),
      };
    }
    return found;
  }
}
