/** How far the clock of a process is ahead of the machine's, in milliseconds; for the preload and for what it starts. */
export const aheadVariable = 'OUTRIDER_CLOCK_AHEAD_MS';

const PRELOAD_URL = new URL('./skew-preload.ts', import.meta.url).href;

/** What Node is started with so that its clock is ahead by so much, or behind; nothing where it is right. */
export function skewedClock(aheadMs: number): {
  readonly flags: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
} {
  if (aheadMs === 0) return { flags: [], variables: {} };
  return { flags: ['--import', PRELOAD_URL], variables: { [aheadVariable]: String(aheadMs) } };
}
