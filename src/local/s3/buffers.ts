/** Bytes that are read or written together, so that small chunks do not cost a system call each. */
export const BUFFER_BYTES = 256 * 1024;

/** Kept for the next; more are there only while more are in use. */
const MAX_KEPT = 16;

const kept: Buffer[] = [];

/**
 * A buffer of {@link BUFFER_BYTES}, holding anything. Bytes go through the same few again and again: new ones for each
 * chunk would have the collector look through the whole heap every few megabytes.
 */
export const takeBuffer = (): Buffer => kept.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);

/** Gives a buffer back that nobody reads or writes any more. */
export function giveBuffer(buffer: Buffer): void {
  if (kept.length < MAX_KEPT) kept.push(buffer);
}
