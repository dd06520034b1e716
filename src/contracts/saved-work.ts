import * as z from 'zod';
import { limits } from './limits.ts';

const count = z.number().min(0);

/**
 * Where what an attempt had done lies when it lost its place, or its time, for the next attempt of its task to take up: in
 * an object under the key of the attempt's output in the data bucket. At its begin the output of what was read, then a note
 * of `noteBytes` bytes (`SavedNote`, as JSON) with this CRC-32.
 */
export const savedObjectSchema = z.object({
  dataBytes: z.int().min(0),
  noteBytes: z.int().min(1).max(limits.savedNoteBytes),
  noteCrc: z.int().min(0),
});

/** What the record of an attempt tells of it, with how much of the task's input that is. */
export const savedWorkSchema = savedObjectSchema.extend({
  bytesDone: count,
  bytesTotal: count,
  /** The attempt whose work was to be taken up and could not, so that this was begun at the begin; absent: there is none. */
  insteadOf: z.int().min(0).exactOptional(),
});
export type SavedWork = z.output<typeof savedWorkSchema>;

/** Whether two records tell of one piece of work. */
export const isSameWork = (a: SavedWork, b: SavedWork): boolean =>
  a.noteCrc === b.noteCrc &&
  a.noteBytes === b.noteBytes &&
  a.dataBytes === b.dataBytes &&
  a.bytesDone === b.bytesDone;

/** As a launch names it: the work of that attempt of the same task. */
export const savedOfSchema = savedObjectSchema.extend({ attempt: z.int().min(0) });
export type SavedOf = z.output<typeof savedOfSchema>;

/**
 * What an attempt has taken up of an earlier one of its task: bytes of input, of which it reads none itself, and which are
 * in none of its own counts of bytes.
 */
export interface TakenUp {
  readonly attempt: number;
  readonly bytes: number;
  /** How long it took to take that up, before the first byte of the rest; absent of workers that do not tell. */
  readonly ms?: number;
}

/** What an attempt that takes the work up has to know of it. */
export const savedNoteSchema = z.object({
  version: z.literal(1),
  /** Of each input that was read in part, by its place among the stage's: see `InputPlace`. */
  inputs: z.array(z.object({ input: z.int(), segment: z.int(), offset: z.int().exactOptional() })),
  /** Of the output: one partition where it is text of the final stage. */
  partitions: z.object({ lengths: z.array(z.int().min(0)), crcs: z.array(z.int().min(0)) }),
  /** Of the task so far, in all its attempts. */
  bytesDone: count,
  recordsIn: count,
  recordsOut: count,
  /** Pairs, since a name may be "__proto__". */
  counters: z.array(z.tuple([z.string(), z.number()])),
  /** What its operator has to know besides; absent: nothing. */
  state: z.json().exactOptional(),
});
export type SavedNote = z.output<typeof savedNoteSchema>;
