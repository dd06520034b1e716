import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a reader asks of the worker that keeps an output, and with it who of the two has said so. */
export interface Question {
  readonly method: 'GET' | 'HEAD';
  readonly key: string;
  /** Bytes [start, end). */
  readonly start: number;
  readonly end: number;
  /** Of the reader's making, so that no answer to another question fits this one. */
  readonly nonce: string;
}

/** Names of headers. `proof` goes both ways: see `proofOf`. */
export const header = {
  range: 'x-outrider-range',
  nonce: 'x-outrider-nonce',
  proof: 'x-outrider-proof',
  size: 'x-outrider-size',
} as const;

/** What the workers of a job share and nobody else knows, by the word with which each of them finds the job's session. */
export const secretOf = (access: string): Buffer =>
  createHmac('sha256', access).update('outrider kept outputs').digest();

/**
 * Proves that whoever asks, or gives (`sizeBytes` being that of the whole output), knows the job's secret, without sending
 * it. An answer with it is by a worker of the same job to that very question, which only one does that keeps the attempt's
 * output: whoever else has come to have the address cannot make it.
 */
export function proofOf(
  secret: Buffer,
  { method, key, start, end, nonce }: Question,
  sizeBytes?: number,
): string {
  const said = [
    sizeBytes === undefined ? 'ask' : `give ${String(sizeBytes)}`,
    method,
    key,
    start,
    end,
    nonce,
  ];
  return createHmac('sha256', secret).update(said.join('\n')).digest('hex');
}

export function isProof(given: unknown, expected: string): boolean {
  if (typeof given !== 'string' || given.length !== expected.length) return false;
  return timingSafeEqual(Buffer.from(given), Buffer.from(expected));
}
