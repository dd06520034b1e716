import { randomUUID } from 'node:crypto';
import { Agent, type IncomingMessage, request as ask } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { NotFoundError, StoreUnavailableError } from '../../../contracts/errors.ts';
import type { ByteRange } from '../../../ports/object-store.ts';
import { header, isProof, proofOf, type Question } from './question.ts';

/** Without a byte for so long nobody answers, or goes on. */
const silenceMs = 5_000;
const tries = 2;
const pauseMs = 200;
const mostSockets = 32;

/** Reads the outputs that other workers of the same job keep. */
export class KeptClient {
  readonly #secret: Buffer;
  readonly #silenceMs: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: mostSockets });

  /** `limits.silenceMs`: see above. */
  constructor(secret: Buffer, limits: { readonly silenceMs?: number } = {}) {
    this.#secret = secret;
    this.#silenceMs = limits.silenceMs ?? silenceMs;
  }

  /**
   * The bytes of a range. Throws `NotFoundError` where whoever answers does not keep that output, or is not of this job,
   * and `StoreUnavailableError` where nobody answers when asked twice, or the answer breaks off.
   */
  async *read(
    address: string,
    key: string,
    { start, end }: ByteRange,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const { response, sizeBytes } = await this.#answered(address, { method: 'GET', key, start, end }, signal);
    let missing = Math.max(0, Math.min(end, sizeBytes) - start);
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        missing -= chunk.length;
        yield chunk;
      }
    } catch (cause) {
      signal?.throwIfAborted();
      throw unavailable(address, cause);
    }
    if (missing !== 0) throw unavailable(address);
  }

  /** The size of an output; throws as `read` does. */
  async sizeOf(address: string, key: string, signal?: AbortSignal): Promise<number> {
    const { response, sizeBytes } = await this.#answered(
      address,
      { method: 'HEAD', key, start: 0, end: 0 },
      signal,
    );
    response.resume();
    return sizeBytes;
  }

  async #answered(
    address: string,
    what: Omit<Question, 'nonce'>,
    signal?: AbortSignal,
  ): Promise<{ response: IncomingMessage; sizeBytes: number }> {
    for (let tried = 1; ; tried++) {
      signal?.throwIfAborted();
      try {
        return await this.#ask(address, { ...what, nonce: randomUUID() }, signal);
      } catch (cause) {
        signal?.throwIfAborted();
        if (cause instanceof NotFoundError) throw cause;
        if (tried >= tries) throw unavailable(address, cause);
        await delay(pauseMs, undefined, signal === undefined ? {} : { signal });
      }
    }
  }

  /** One answer, if it is by a worker of this job to this very question. */
  #ask(
    address: string,
    question: Question,
    signal?: AbortSignal,
  ): Promise<{ response: IncomingMessage; sizeBytes: number }> {
    const { method, key, start, end, nonce } = question;
    return new Promise((resolve, reject) => {
      const sent = ask(`http://${address}/${key}`, {
        method,
        agent: this.#agent,
        timeout: this.#silenceMs,
        ...(signal === undefined ? {} : { signal }),
        headers: {
          [header.range]: `${String(start)}-${String(end)}`,
          [header.nonce]: nonce,
          [header.proof]: proofOf(this.#secret, question),
        },
      });
      let hasBytesWaiting = (): boolean => false;
      sent.once('response', (response) => {
        hasBytesWaiting = () => response.readableLength > 0;
        const sizeBytes = Number(response.headers[header.size]);
        const expected = proofOf(this.#secret, question, sizeBytes);
        if (response.statusCode === 200 && isProof(response.headers[header.proof], expected)) {
          resolve({ response, sizeBytes });
          return;
        }
        sent.destroy();
        reject(new NotFoundError(`whoever is at ${address} does not keep ${key}`));
      });
      // Also of an answer that has begun: a socket without a byte. Not while bytes wait for whoever reads: the pause is its own.
      // The request itself hears of its socket's silence once: the socket is listened to, which others use afterwards.
      sent.once('socket', (socket) => {
        const onSilence = (): void => {
          if (hasBytesWaiting()) socket.setTimeout(this.#silenceMs);
          else sent.destroy(new Error(`no answer within ${String(this.#silenceMs)} ms`));
        };
        socket.on('timeout', onSilence);
        sent.once('close', () => socket.off('timeout', onSilence));
      });
      sent.on('error', reject);
      sent.end();
    });
  }
}

const unavailable = (address: string, cause?: unknown): StoreUnavailableError =>
  new StoreUnavailableError(
    `the worker at ${address} does not answer`,
    {},
    cause === undefined ? {} : { cause },
  );
