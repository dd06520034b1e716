import type { CountableClient } from './count-requests.ts';

/** When a request was sent and its answer was there, by our clock, and the whole second that the server dated it with. */
export interface DatedAnswer {
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
  readonly dateMs: number;
}

const secondMs = 1_000;

/**
 * By how many milliseconds our clock is ahead of the server's; negative: behind. The server dated its answer at some time
 * between the two of ours. Zero where that may be so with a right clock; else the middle of what may be.
 */
export function clockAheadMs({ sentAtMs, receivedAtMs, dateMs }: DatedAnswer): number {
  const least = sentAtMs - (dateMs + secondMs);
  const most = receivedAtMs - dateMs;
  return least <= 0 && most >= 0 ? 0 : Math.round((least + most) / 2);
}

interface Dated {
  readonly response?: { readonly headers?: Readonly<Record<string, string>> };
}

/** Tells of each answer that a client gets, from a server that says what time it is, refusals aside. */
function watchDates(client: CountableClient, onAnswer: (answer: DatedAnswer) => void): void {
  const middleware = (next: (args: unknown) => Promise<Dated>) => async (args: unknown) => {
    const sentAtMs = Date.now();
    const answered = await next(args);
    const dateMs = Date.parse(answered.response?.headers?.['date'] ?? '');
    if (!Number.isNaN(dateMs)) onAnswer({ sentAtMs, receivedAtMs: Date.now(), dateMs });
    return answered;
  };
  const options = { step: 'deserialize', name: 'outriderDates', priority: 'high', override: true };
  client.middlewareStack.add(middleware as never, options as never);
}

/** By how many milliseconds our clock is ahead, as far as the client's last answer has told; 0 before the first. */
export function watchClock(client: CountableClient): () => number {
  let aheadMs = 0;
  watchDates(client, (answer) => {
    aheadMs = clockAheadMs(answer);
  });
  return () => aheadMs;
}
