import { createHash, createHmac } from 'node:crypto';
import { Agent, request } from 'node:http';
import { SignatureV4 } from '@smithy/signature-v4';
import type * as z from 'zod';
import {
  filesAnswerSchema,
  type HandedFile,
  HandedQuery,
  mostHandedFiles,
  partAnswerSchema,
  type PartRequest,
  roomAnswerSchema,
} from '../../contracts/handed-files.ts';
import type { ObjectRef } from '../../contracts/keys.ts';
import type { UploadRef } from '../../ports/object-store.ts';

export interface HandingKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface HandingSettings {
  /** Of the S3 that hands files, `http://127.0.0.1:…`. */
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: () => Promise<HandingKeys>;
}

/** How long an answer may take. */
const answerWithinMs = 30_000;
const mostAnswerBytes = 8 * 1024 * 1024;
const mostSockets = 8;

/** One that asks for the file of an object. */
interface Asker {
  readonly key: string;
  readonly answer: (file: HandedFile | undefined) => void;
}

/**
 * Asks the embedded S3 of this machine for files of objects and uploads. Whatever goes wrong is no file, since whoever
 * asked can make the same request of S3 itself, which says why. Never throws.
 */
export class HandingClient {
  private readonly settings: HandingSettings;
  private readonly signer: SignatureV4;
  private readonly agent = new Agent({ keepAlive: true, maxSockets: mostSockets });
  private readonly asking = new Map<string, Asker[]>();

  constructor(settings: HandingSettings) {
    this.settings = settings;
    this.signer = new SignatureV4({
      credentials: settings.credentials,
      region: settings.region,
      service: 's3',
      sha256: NativeSha256,
      uriEscapePath: false,
    });
  }

  /** The file of an object. What is asked for in one turn of the process goes in one request. */
  fileOf({ bucket, key }: ObjectRef): Promise<HandedFile | undefined> {
    return new Promise((answer) => {
      const waiting = this.asking.get(bucket);
      if (waiting !== undefined && waiting.length < mostHandedFiles) {
        waiting.push({ key, answer });
        return;
      }
      const batch: Asker[] = [{ key, answer }];
      this.asking.set(bucket, batch);
      setImmediate(() => {
        if (this.asking.get(bucket) === batch) this.asking.delete(bucket);
        void this.askFor(bucket, batch);
      });
    });
  }

  private async askFor(bucket: string, batch: readonly Asker[]): Promise<void> {
    const body = { keys: batch.map(({ key }) => key) };
    const answer = await this.post(`/${bucket}`, { [HandedQuery.files]: '' }, body, filesAnswerSchema);
    batch.forEach(({ answer: tell }, place) => {
      tell(answer?.files[place] ?? undefined);
    });
  }

  /** A file for the parts of an upload, to the first that asks. */
  async roomOf(upload: UploadRef): Promise<string | undefined> {
    const query = { [HandedQuery.room]: '', uploadId: upload.uploadId };
    return (await this.post(pathOf(upload), query, {}, roomAnswerSchema))?.path;
  }

  /** Makes bytes in that file a part; answers its ETag. */
  async partAt(upload: UploadRef, number: number, part: PartRequest): Promise<string | undefined> {
    const query = {
      [HandedQuery.part]: '',
      partNumber: String(number),
      uploadId: upload.uploadId,
    };
    return (await this.post(pathOf(upload), query, part, partAnswerSchema))?.etag;
  }

  private async post<T extends z.ZodType>(
    path: string,
    query: Readonly<Record<string, string>>,
    content: object,
    schema: T,
  ): Promise<z.output<T> | undefined> {
    try {
      const { hostname, host, port } = new URL(this.settings.endpoint);
      const body = JSON.stringify(content);
      const signed = await this.signer.sign({
        method: 'POST',
        protocol: 'http:',
        hostname,
        port: Number(port),
        path,
        query: { ...query },
        headers: { host, 'content-type': 'application/json' },
        body,
      });
      const target = `${path}?${new URLSearchParams(query).toString()}`;
      const { headers } = signed;
      const text = await this.exchange({ hostname, port, path: target, headers }, body);
      return text === undefined ? undefined : schema.parse(JSON.parse(text));
    } catch {
      return undefined;
    }
  }

  /** The body of a good answer. */
  private exchange(
    target: { hostname: string; port: string; path: string; headers: Record<string, string> },
    body: string,
  ): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const options = { ...target, method: 'POST', agent: this.agent, timeout: answerWithinMs };
      const outgoing = request(options, (incoming) => {
        const chunks: Buffer[] = [];
        let sizeBytes = 0;
        incoming.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          sizeBytes += chunk.length;
          if (sizeBytes > mostAnswerBytes) incoming.destroy(new Error('the answer is too long'));
        });
        incoming.once('error', reject);
        incoming.once('end', () => {
          resolve(incoming.statusCode === 200 ? Buffer.concat(chunks).toString() : undefined);
        });
      });
      outgoing.once('timeout', () => outgoing.destroy(new Error('no answer')));
      outgoing.once('error', reject);
      outgoing.end(body);
    });
  }
}

/** As S3 wants the path of a key: all but the marks that need none, and the slashes between. */
const pathOf = ({ bucket, key }: ObjectRef): string =>
  `/${bucket}/${encodeURIComponent(key)
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%2F', '/')}`;

/** SHA-256 by this process's own crypto, in the form that the signer takes. */
class NativeSha256 {
  private readonly hash: ReturnType<typeof createHash> | ReturnType<typeof createHmac>;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }

  update(chunk: string | ArrayBuffer | ArrayBufferView): void {
    this.hash.update(bytesOf(chunk));
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.hash.digest());
  }

  reset(): void {
    throw new Error('a hash is made once');
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof data === 'string') return Buffer.from(data);
  return data instanceof ArrayBuffer
    ? new Uint8Array(data)
    : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
