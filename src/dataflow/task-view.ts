import type { TaskContext } from '../worker/operator.ts';
import { checkShare } from '../worker/progress-share.ts';
import { atPlace, type RecordPlace } from '../worker/user-code/record-place.ts';
import type { Context, Logger, RecordInput } from './context.ts';
import { decodeKey, shownKey } from './key-codec.ts';

/**
 * The context of a task's functions, and the place of the record at hand. Readers set the place for each record, which
 * costs no more than keeping a number; it is put into words only when somebody asks.
 */
export class TaskView implements Context {
  readonly stage: string;
  readonly task: number;
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly scratchDir: string;
  readonly log: Logger = logger;
  /** These two bound to the view, for functions that take their context apart: `(line, { count }) => …`. */
  readonly count: Context['count'] = (name, by = 1) => {
    this.#task.count(name, by);
  };
  readonly progress: Context['progress'] = (fraction) => {
    checkShare(fraction);
    this.#task.progress?.(fraction);
  };
  readonly #task: TaskContext;
  /** Number of the input, its file and the record's place in it; no file where a stage has made the record. */
  #input = 0;
  #file: string | undefined;
  #offset = 0;
  #key: Buffer | undefined;
  #count = 0;

  constructor(task: TaskContext) {
    this.#task = task;
    this.stage = task.stage;
    this.task = task.task;
    this.attempt = task.attempt ?? 0;
    this.signal = task.signal;
    this.scratchDir = task.scratchDir;
  }

  /** Records from `offset` in a file come next. */
  inFile(input: number, file: string, offset: number): void {
    this.#input = input;
    this.#file = file;
    this.#offset = offset;
  }

  /** The record at hand begins at `offset` in the file that was named last. */
  at(offset: number): void {
    this.#offset = offset;
  }

  /** Records of another stage come next; with a key where they are of one. */
  ofStage(input: number, key: Buffer | undefined): void {
    this.#input = input;
    this.#file = undefined;
    this.#key = key;
    this.#count++;
  }

  /** No record is at hand any more: what goes wrong from here on is not of the last one. */
  atEnd(): void {
    this.#file = undefined;
    this.#count = 0;
  }

  get input(): RecordInput | undefined {
    const key = this.#file;
    if (key === undefined) return undefined;
    return { name: fileName(key), key, offset: this.#offset };
  }

  /** What was thrown for the record at hand, with its place. */
  located(error: unknown): unknown {
    return atPlace(error, this.#place());
  }

  #place(): RecordPlace | undefined {
    if (this.#file !== undefined)
      return { kind: 'file', input: this.#input, file: this.#file, offset: this.#offset };
    const from = this.#task.inputs[this.#input]?.stage;
    if (from === undefined || this.#count === 0) return undefined;
    const which =
      this.#key === undefined ? `record ${String(this.#count)}` : `key ${shownKey(decodeKey(this.#key))}`;
    return { kind: 'words', words: `${which} of stage ${from}` };
  }
}

/** Files that the command has uploaded bear a number before their name, which keeps their order. */
function fileName(key: string): string {
  const name = key.slice(key.lastIndexOf('/') + 1);
  return key.startsWith('input/') ? name.replace(/^\d+-/, '') : name;
}

const line = (message: string, details: unknown): string =>
  details === undefined ? message : `${message} ${JSON.stringify(details)}`;

const logger: Logger = {
  info: (message, details) => {
    console.log(line(message, details));
  },
  warn: (message, details) => {
    console.warn(line(message, details));
  },
  error: (message, details) => {
    console.error(line(message, details));
  },
};
