import { InvalidInputError } from '../contracts/errors.ts';
import { isOfMemory, nameOfThrown } from '../worker/failure-of.ts';
import { Chain, type SideTable } from './chain.ts';
import type { Step } from './compile.ts';
import type { Take } from './heads.ts';
import { copyOfLent } from './lent-records.ts';
import type { TailWriter } from './tails.ts';
import type { TaskView } from './task-view.ts';

/** Records that are left out are told of in the log, so many of a task. */
const mostTold = 5;

/**
 * Takes records of a file one by one, and leaves out, whole, those for which a function of the job throws, where its input
 * skips bad records. What a record gives is held back until all of its steps have taken it. What no other record would
 * change is no record's fault and fails the task: a wrong use of a step, a file that is missing, a task that is told to stop.
 */
export function takingGood(
  steps: readonly Step[],
  view: TaskView,
  {
    writer,
    sides,
    onBad,
  }: {
    readonly writer: TailWriter;
    readonly sides: ReadonlyMap<number, SideTable>;
    readonly onBad: () => void;
  },
): Take {
  let held: unknown[] = [];
  let told = 0;
  const hold = (record: unknown, isLent: boolean): boolean => {
    held.push(isLent ? copyOfLent(record) : record);
    return false;
  };
  const chain = new Chain(steps, view, hold, sides);
  const leaveOut = (error: unknown): void => {
    if (!isOfRecord(error, view.signal)) throw error;
    onBad();
    if (told++ < mostTold) view.log.warn(`left out a record: ${String(error)}`, view.input);
  };
  const write = (records: readonly unknown[], from: number): Promise<void> | undefined => {
    for (let at = from; at < records.length; at++) {
      let isFull: boolean;
      try {
        isFull = writer.push(records[at]);
      } catch (error) {
        // Of a record of which something was taken, nothing can be left out any more.
        if (at > 0) throw error;
        leaveOut(error);
        return undefined;
      }
      if (isFull) return writer.drain().then(() => write(records, at + 1));
    }
    return undefined;
  };
  return (record) => {
    held = [];
    try {
      chain.push(record);
    } catch (error) {
      leaveOut(error);
      return undefined;
    }
    return write(held, 0);
  };
}

/** By name: the worker's side of the process throws classes of its own, which are not those of the bundle. */
const ours: ReadonlySet<string> = new Set(['UserCode', 'BadInput']);

/** What V8 says of a length that is none, such as -1 or NaN: of a record, and not of memory. */
const wrongLength = 'Invalid array length';

/** Whether what was thrown may be the record's fault. */
function isOfRecord(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted) return false;
  if (ours.has(nameOfThrown(error)) || error instanceof InvalidInputError) return false;
  if (!(error instanceof Error)) return true;
  // Errors of the system's calls have a number.
  return !('errno' in error) && (error.message === wrongLength || !isOfMemory(error));
}
