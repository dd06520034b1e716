import { invariant } from '../contracts/errors.ts';
import { BadRecordError, BadValueError } from './operator.ts';
import type { LocatedRows, Row, TaskInput } from './operator.ts';

/** Tells file and line of a row (`file:3`) from its index in its batch. */
type PlaceOfRow = (index: number) => Promise<string> | string;

// Beside the rows and not in them: a place is wanted for one row in a million, and a row is the user's data alone.
const placesOf = new WeakMap<readonly Row[], RowPlaces>();

interface RowPlaces {
  readonly placeOf: PlaceOfRow;
  readonly file: string;
  /** Byte at which each row begins in the file. */
  readonly offsets: readonly number[];
}

/** Keeps where the rows of a batch come from, for as long as the batch itself is kept. */
export function rememberPlaces(rows: readonly Row[], places: RowPlaces): void {
  placesOf.set(rows, places);
}

/** File and line of a row of a batch (`file:3`), undefined where nothing was remembered of the batch. */
export async function placeOfRow(rows: readonly Row[], index: number): Promise<string | undefined> {
  return placesOf.get(rows)?.placeOf(index);
}

/** Batches of rows with the places that were remembered for them; none is without. */
export async function* locatedRows(batches: AsyncIterable<readonly Row[]>): AsyncGenerator<LocatedRows> {
  for await (const rows of batches) {
    const places = placesOf.get(rows);
    invariant(places !== undefined, 'rows of files have places');
    yield { rows, file: places.file, offsets: places.offsets };
  }
}

/**
 * Hands the rows of an input to `work`, one after the other. Where the input skips bad records, so does this those for
 * which `work` throws `BadValueError`, which must then have taken nothing of the row. Any other `BadRecordError` that
 * `work` throws gets the file and line of the row before its message, where the row comes from a file.
 */
export async function forEachRow(
  input: Pick<TaskInput, 'rows' | 'onBadValue'>,
  work: (row: Row) => Promise<void> | undefined,
): Promise<void> {
  for await (const rows of input.rows()) {
    let index = 0;
    try {
      for (const row of rows) {
        try {
          const wait = work(row);
          if (wait !== undefined) await wait;
        } catch (error) {
          if (!(error instanceof BadValueError) || input.onBadValue === undefined) throw error;
          input.onBadValue();
        }
        index++;
      }
    } catch (error) {
      const places = placesOf.get(rows);
      if (!(error instanceof BadRecordError) || places === undefined) throw error;
      throw new BadRecordError(`${await places.placeOf(index)}: ${error.message}`, { cause: error });
    }
  }
}
