import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { Heap } from '../../src/lib/heap.ts';
import { createRng } from '../../src/lib/rng.ts';

interface Due {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Time that goes on only when nothing else is left to do. */
export class VirtualTime {
  private time = 0;
  private order = 0;
  private readonly due = new Heap<Due>((a, b) => a.at < b.at || (a.at === b.at && a.order < b.order));
  private readonly rng = createRng('virtual time');

  now = (): number => this.time;
  random = (): number => this.rng.next();
  /** In whole milliseconds, so that much happens at once and time takes few steps. */
  sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      this.due.push({ at: this.time + Math.max(1, Math.round(ms)), order: this.order++, run: resolve });
      signal?.addEventListener('abort', () => {
        resolve();
      });
    });

  /** Goes on until `work` has ended; answers when that was. */
  async until(work: Promise<unknown>): Promise<number> {
    const state = { isOver: false };
    const settle = (): void => {
      state.isOver = true;
    };
    work.then(settle, settle);
    for (;;) {
      // Streams and the SDK take several turns of the loop until they wait for time again.
      for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (state.isOver) return this.time;
      const next = this.due.pop();
      if (next === undefined) throw new Error('everybody waits, and nothing is due');
      this.time = next.at;
      next.run();
      for (let same = this.due.peek(); same?.at === this.time; same = this.due.peek()) this.due.pop()?.run();
    }
  }
}

/** What an S3 was asked for. */
export interface Asked {
  served: number;
  refused: number;
}

/**
 * An S3 that answers as many reads a second as it does for one prefix, and `SlowDown` to the rest: a bucket of tokens,
 * a tenth of a second deep. Behind the clients' own signing, retries and parsing; only the wire is missing.
 */
export class S3AtItsRate {
  readonly asked: Asked = { served: 0, refused: 0 };
  private tokens: number;
  private filledAt = 0;
  private readonly time: VirtualTime;
  private readonly perSecond: number;
  private readonly body: (key: string, start: number, end: number) => Uint8Array;

  constructor(
    time: VirtualTime,
    options: {
      readonly perSecond: number;
      readonly body: (key: string, start: number, end: number) => Uint8Array;
    },
  ) {
    this.time = time;
    this.perSecond = options.perSecond;
    this.tokens = options.perSecond / 10;
    this.body = options.body;
  }

  /** `client`, with this S3 in the place of its connections. */
  behind(client: S3Client): S3Client {
    const handle = (request: HttpRequest): Promise<{ response: HttpResponse }> => this.answer(request);
    Object.assign(client.config, { requestHandler: { handle } });
    return client;
  }

  private async answer(request: HttpRequest): Promise<{ response: HttpResponse }> {
    const now = this.time.now();
    this.tokens = Math.min(
      this.perSecond / 10,
      this.tokens + ((now - this.filledAt) * this.perSecond) / 1_000,
    );
    this.filledAt = now;
    if (this.tokens < 1) {
      this.asked.refused++;
      await this.time.sleep(10);
      const text = '<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>';
      return responseOf(503, Buffer.from(text), { 'content-type': 'application/xml' });
    }
    this.tokens--;
    this.asked.served++;
    await this.time.sleep(15 + 10 * this.time.random());
    const [, from = '0', to = '0'] = /^bytes=(\d+)-(\d+)$/.exec(request.headers['range'] ?? '') ?? [];
    const bytes = this.body(request.path.slice(1), Number(from), Number(to) + 1);
    return responseOf(206, bytes, { etag: '"one"', 'content-length': String(bytes.length) });
  }
}

interface HttpRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}
interface HttpResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readable;
}

const responseOf = (
  statusCode: number,
  bytes: Uint8Array,
  headers: Readonly<Record<string, string>>,
): { response: HttpResponse } => ({ response: { statusCode, headers, body: Readable.from([bytes]) } });
