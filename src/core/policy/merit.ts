/** Beyond any task's life: stands for "for ever" where numbers must be finite. */
const foreverMs = 1e12;

/** A time as logs and ranks take it: whole milliseconds, finite. */
export const finiteMs = (ms: number): number => Math.round(Math.min(foreverMs, Math.max(-foreverMs, ms)));
