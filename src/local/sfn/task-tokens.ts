import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import type { Failure } from './history.ts';
import { TOKEN_MARK } from './runnable.ts';

/** How whoever had a task's token ended it, or that nothing was heard of them for too long. */
export type TokenAnswer =
  | { readonly kind: 'succeeded'; readonly output: unknown }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'silent' };

/** A task that waits for an answer to its token. */
export interface OpenToken {
  readonly token: string;
  /** Resolves with the first answer; never rejects. */
  readonly answer: Promise<TokenAnswer>;
  /** From then on the token is as one of a task that has timed out. No effect on one that was answered. */
  close(): void;
}

interface Waiting {
  readonly settle: (answer: TokenAnswer) => void;
  readonly heartbeatMs: number | undefined;
  timer: NodeJS.Timeout | undefined;
}

const contents = z.object({ executionArn: z.string().min(1), key: z.string().min(1) });

/** The execution that a token is for; undefined for what no execution has given out. */
export function executionOfToken(token: string): string | undefined {
  try {
    return contents.parse(JSON.parse(Buffer.from(token, 'base64').toString('utf8'))).executionArn;
  } catch {
    return undefined;
  }
}

/** Tokens of tasks that wait. They are gone with the process: an execution that is resumed gives out new ones. */
export class TaskTokens {
  private readonly waiting = new Map<string, Waiting>();

  /** @param heartbeatSeconds - after so long without a heartbeat the answer is `silent`; absent: it waits on. */
  open(executionArn: string, heartbeatSeconds: number | undefined): OpenToken {
    const key = randomBytes(24).toString('base64url');
    const token = Buffer.from(JSON.stringify({ executionArn, key })).toString('base64');
    const { promise, resolve } = Promise.withResolvers<TokenAnswer>();
    this.waiting.set(token, {
      settle: resolve,
      heartbeatMs: heartbeatSeconds === undefined ? undefined : heartbeatSeconds * 1_000,
      timer: undefined,
    });
    this.beat(token);
    return { token, answer: promise, close: () => void this.take(token) };
  }

  /** False where no task waits for this token any more. */
  settle(token: string, answer: TokenAnswer): boolean {
    const waiting = this.take(token);
    waiting?.settle(answer);
    return waiting !== undefined;
  }

  /** A sign of life; false as for `settle`. */
  beat(token: string): boolean {
    const waiting = this.waiting.get(token);
    if (waiting === undefined) return false;
    clearTimeout(waiting.timer);
    if (waiting.heartbeatMs !== undefined)
      waiting.timer = setTimeout(() => this.settle(token, { kind: 'silent' }), waiting.heartbeatMs);
    return true;
  }

  private take(token: string): Waiting | undefined {
    const waiting = this.waiting.get(token);
    clearTimeout(waiting?.timer);
    this.waiting.delete(token);
    return waiting;
  }
}

/** The parameters with a token in the places that were marked for it. */
export function withToken(value: unknown, token: string): unknown {
  if (value === TOKEN_MARK) return token;
  if (Array.isArray(value)) return value.map((each) => withToken(each, token));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withToken(each, token)]));
}
