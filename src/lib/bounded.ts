/**
 * Calls `work` for each item, at most `limit` at a time, starting them in order. Rejects with the first error
 * after the calls that were under way have ended; later items are not begun.
 */
export async function forEachBounded<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const failures: unknown[] = [];
  const lane = async (): Promise<void> => {
    while (failures.length === 0) {
      const next = iterator.next(); // The lanes share one iterator, so each item is taken once.
      if (next.done === true) return;
      try {
        await work(next.value);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, limit) }, lane));
  if (failures.length > 0) throw failures[0];
}
