import { sqlText } from './engine.ts';

/** Lines of fields between tabs in a file. */
export interface GroupFile {
  readonly path: string;
  /** No line is longer. */
  readonly longestBytes: number;
}

/** Fields between tabs as they are: a field that holds a tab or a line end would be torn. */
const linesForm = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\t'";

/** Writes what a query gives as lines of fields between tabs. */
export const copyLines = (query: string, path: string): string =>
  `COPY (${query}) TO ${sqlText(path)} (${linesForm})`;
