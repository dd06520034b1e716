import { randomUUID } from 'node:crypto';
import { GetObjectCommand, HeadObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { StoreUnavailableError } from '../../contracts/errors.ts';
import { encodeForecast, readForecast, type StoredForecast } from '../../contracts/forecast.ts';
import { forecastKey, uriOf } from '../../contracts/keys.ts';
import type { ForecastStore, FoundForecast } from '../../ports/forecast-store.ts';
import { backoff } from './backoff.ts';
import { denialOf } from './denials.ts';
import { faultOf } from './faults.ts';

/** Far above what the limits of a profile and a table come to: what is longer is none of ours. */
const LARGEST_BYTES = 32 * 1024 * 1024;
const ATTEMPTS = 6;
/** Metadata by which a write that the SDK repeats after a lost answer knows its own first delivery. */
const writeIdMetadata = 'outrider-write';

/**
 * What was learned of recurring jobs, an object for each name. Its tag is the ETag: a write that changes nothing gives the
 * same again, which whoever decides by the contents may take for no change.
 */
export class S3ForecastStore implements ForecastStore {
  private readonly client: S3Client;
  private readonly bucket: string;

  constructor(client: S3Client, bucket: string) {
    this.client = client;
    this.bucket = bucket;
  }

  async get(name: string): Promise<FoundForecast | undefined> {
    const where = this.where(name);
    try {
      const {
        Body: body,
        ETag: tag,
        ContentLength: sizeBytes = 0,
      } = await this.client.send(new GetObjectCommand(where));
      if (body === undefined || tag === undefined) throw new Error('S3 answered without body or ETag');
      if (sizeBytes > LARGEST_BYTES) {
        await body.transformToWebStream().cancel();
        return { forecast: undefined, unreadable: `it is of ${String(sizeBytes)} bytes`, tag };
      }
      return { ...readForecast(await body.transformToString()), tag };
    } catch (cause) {
      // A bucket that is not there is another matter: it would be taken for nothing learned.
      if (faultOf(cause).name === 'NoSuchKey') return undefined;
      throw this.translated('read', 's3:GetObject', name, cause);
    }
  }

  async put(name: string, forecast: StoredForecast, ifTag: string | undefined): Promise<'stored' | 'stale'> {
    const where = this.where(name);
    const writeId = randomUUID();
    const command = new PutObjectCommand({
      ...where,
      Body: encodeForecast(forecast),
      ContentType: 'application/json',
      Metadata: { [writeIdMetadata]: writeId },
      ...(ifTag === undefined ? { IfNoneMatch: '*' } : { IfMatch: ifTag }),
    });
    for (let attempt = 1; ; attempt++) {
      try {
        await this.client.send(command);
        return 'stored';
      } catch (cause) {
        const { name: fault, status } = faultOf(cause);
        // Without a key: what was to be replaced is gone.
        if (status === 412 || fault === 'NoSuchKey')
          return (await this.holds(name, writeId)) ? 'stored' : 'stale';
        // 409: a rival's write is under way, and its outcome decides.
        if (status !== 409 || attempt === ATTEMPTS)
          throw this.translated('write', 's3:PutObject', name, cause);
        await backoff(attempt);
      }
    }
  }

  /** Whether what lies there was written by this very write. */
  private async holds(name: string, writeId: string): Promise<boolean> {
    try {
      const { Metadata: metadata = {} } = await this.client.send(new HeadObjectCommand(this.where(name)));
      return metadata[writeIdMetadata] === writeId;
    } catch (cause) {
      if (faultOf(cause).status === 404) return false;
      throw this.translated('read', 's3:GetObject', name, cause);
    }
  }

  private where(name: string): { Bucket: string; Key: string } {
    return { Bucket: this.bucket, Key: forecastKey(name) };
  }

  private translated(operation: string, action: string, name: string, cause: unknown): Error {
    const resource = uriOf({ bucket: this.bucket, key: forecastKey(name) });
    const { name: fault, status } = faultOf(cause);
    const details = { uri: resource, fault, status };
    return (
      denialOf(cause, { action, resource }) ??
      new StoreUnavailableError(`${operation} of a forecast in S3 failed`, details, { cause })
    );
  }
}
