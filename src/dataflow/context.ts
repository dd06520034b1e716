/** A key: what records are grouped, joined and sorted by. Equal keys are those of one type with one value. */
export type Key = string | number | boolean | null | readonly Key[];

/** Where a record comes from. */
export interface RecordInput {
  /** The file's name, without its directory. */
  readonly name: string;
  /** The object's key in its bucket. */
  readonly key: string;
  /**
   * Byte at which the record begins in the file; of a packed file in what it unpacks to. But of a gzip file that several tasks
   * read it is so in the first piece alone: behind that, nobody knows how much text is before, and it only tells which of two
   * records of the file comes first, and that they are two.
   */
  readonly offset: number;
}

/** Writes to the job's log, a line for each call; details are added as JSON. */
export interface Logger {
  info(message: string, details?: unknown): void;
  warn(message: string, details?: unknown): void;
  error(message: string, details?: unknown): void;
}

/** What the functions of a job see besides their record. One for all records of a task. */
export interface Context {
  readonly stage: string;
  readonly task: number;
  /** 0 for the first attempt of the task, and more for each that was started again or beside it. */
  readonly attempt: number;
  /** Where the record at hand comes from; undefined where another stage has made it. */
  readonly input: RecordInput | undefined;
  readonly log: Logger;
  /** Fires when the attempt is to stop. */
  readonly signal: AbortSignal;
  /** A directory of the attempt's own, removed after it. */
  readonly scratchDir: string;
  /** Adds to a named sum of the job, 1 where nothing is said. Attempts that did not win do not count. */
  readonly count: (name: string, by?: number) => void;
  /** Says how much of the task is done, from 0 to 1, where that is not the share of its input that was read. */
  readonly progress: (fraction: number) => void;
}
