import { BadRecordError } from '../worker/operator.ts';
import type { Row } from '../worker/operator.ts';

/**
 * The value of a column. In NDJSON a field that is not there is null; in CSV it means that the file has no such
 * column, and throws BadRecordError.
 */
export function cellOf(row: Row, column: string, format: string): unknown {
  if (Object.hasOwn(row, column)) return row[column];
  if (format === 'csv') {
    const columns = Object.keys(row).slice(0, 50).join(', ');
    throw new BadRecordError(`there is no column ${JSON.stringify(column)}; the columns are ${columns}`);
  }
  return null;
}
