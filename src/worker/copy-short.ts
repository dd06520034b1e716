/** Longer pieces are copied by native code as fast, call included. */
const mostShortBytes = 128;
const wordBytes = 4;

/** A buffer's memory in the form that `copyShort` takes. */
export const viewOf = ({ buffer, byteOffset, length }: Buffer): DataView =>
  new DataView(buffer, byteOffset, length);

/** Whether `copyShort` takes a piece of so many bytes. */
export const isShort = (sizeBytes: number): boolean => sizeBytes >= wordBytes && sizeBytes <= mostShortBytes;

/**
 * Copies a short piece between two pieces of memory. No call into native code, at which the processor would wait for one
 * piece before it looks for the next: where pieces lie all over the memory that takes twice as long.
 */
export function copyShort(target: DataView, to: number, source: DataView, from: number, size: number): void {
  const last = size - wordBytes;
  for (let at = 0; at < last; at += wordBytes)
    target.setInt32(to + at, source.getInt32(from + at, true), true);
  // The last word may overlap the one before.
  target.setInt32(to + last, source.getInt32(from + last, true), true);
}
