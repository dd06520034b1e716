import { setTimeout as delay } from 'node:timers/promises';

const FIRST_MS = 25;
const LONGEST_MS = 1_000;

/** Waits before attempt number `attempt` (from 1): up to 25 ms, 50 ms, … 1 s, drawn evenly so that rivals part. */
export async function backoff(attempt: number, signal?: AbortSignal): Promise<void> {
  const longestMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** (attempt - 1));
  await delay(Math.random() * longestMs, undefined, signal === undefined ? {} : { signal });
}
