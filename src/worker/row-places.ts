import { BadRecordError } from './operator.ts';
import type { Row, TaskInput } from './operator.ts';

/** Tells file and line of a row (`file:3`) from its index in its batch. */
type PlaceOfRow = (index: number) => Promise<string> | string;

// Beside the rows and not in them: a place is wanted for one row in a million, and a row is the user's data alone.
const placesOf = new WeakMap<readonly Row[], PlaceOfRow>();

/** Keeps where the rows of a batch come from, for as long as the batch itself is kept. */
export function rememberPlaces(rows: readonly Row[], placeOf: PlaceOfRow): void {
  placesOf.set(rows, placeOf);
}

/**
 * Hands the rows of an input to `work`, one after the other. A `BadRecordError` that `work` throws gets the file
 * and line of the row before its message, where the row comes from a file.
 */
export async function forEachRow(
  input: TaskInput,
  work: (row: Row) => Promise<void> | undefined,
): Promise<void> {
  for await (const rows of input.rows()) {
    let index = 0;
    try {
      for (const row of rows) {
        const wait = work(row);
        if (wait !== undefined) await wait;
        index++;
      }
    } catch (error) {
      const placeOf = placesOf.get(rows);
      if (!(error instanceof BadRecordError) || placeOf === undefined) throw error;
      throw new BadRecordError(`${await placeOf(index)}: ${error.message}`, { cause: error });
    }
  }
}
