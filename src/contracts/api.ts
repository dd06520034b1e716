import * as z from 'zod';
import type { allocationReasons } from './decision-log.ts';
import { jobSpecSchema } from './job-spec.ts';
import type { AttemptRecord, JobRecord } from './records.ts';
import { type EpochMs, epochMs } from './units.ts';

/** Body of `POST /jobs`. */
export const submitRequestSchema = z.strictObject({
  spec: jobSpecSchema,
  /** Two requests with one token start one job. */
  clientToken: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"')
    .optional(),
});
export type SubmitRequest = z.input<typeof submitRequestSchema>;

/** What takes a job's deadline away. */
export const noDeadline = 'none';

/** An instant with its offset from UTC, such as `2027-01-31T18:00:00Z`. */
const instantSchema = z.iso.datetime({ offset: true });

/** The instant of a text such as `2027-01-31T18:00:00Z`, or undefined where it is none. */
export function parseInstant(text: string): EpochMs | undefined {
  return instantSchema.safeParse(text).success ? epochMs(Date.parse(text)) : undefined;
}

const lengthSchema = jobSpecSchema.shape.deadline.unwrap();

/**
 * Body of `PUT /jobs/{id}/deadline`: a length of time from now, as in a spec, an instant, or `none`. An instant and `none`
 * may be sent again with the same effect; a length counts anew from when it is sent.
 */
export const deadlineRequestSchema = z.strictObject({
  deadline: z
    .string()
    .refine(
      (text) =>
        text === noDeadline || parseInstant(text) !== undefined || lengthSchema.safeParse(text).success,
      'must be a length of time from 1s to 7d, such as "90s", "10m" or "2h", an instant such as "2027-01-31T18:00:00Z", or "none"',
    ),
});

/** Answer of `POST /jobs` (201 when started, 200 when the token was known). */
export interface SubmitResponse {
  readonly jobId: string;
  readonly started: boolean;
}
/** Answer of `GET /jobs`. */
export interface ListResponse {
  readonly jobs: readonly JobRecord[];
  /** Ask again with `?cursor=` for more. */
  readonly cursor?: string;
  /** Jobs of the page whose records cannot be read, and what is wrong; absent: none. */
  readonly unreadable?: readonly { readonly jobId: string; readonly message: string }[];
}
/** Answer of `GET /jobs/{id}/attempts`: a page, by launch, of at most `?limit=`. */
export interface AttemptsResponse {
  readonly attempts: readonly AttemptRecord[];
  /** Ask again with `?cursor=` for more. */
  readonly cursor?: string;
  /** How many more there are whose records cannot be read; absent: none. */
  readonly unreadable?: number;
}
/** Slots that a job has asked to be its own for its deadline, from `at` on. */
export interface ToldAllocation {
  readonly at: EpochMs;
  readonly slots: number;
  /** What its control loop has come to, of which they are the whole number. */
  readonly smoothed: number;
  readonly reason: (typeof allocationReasons)[number];
  readonly facts: Readonly<Record<string, number>>;
}
/** Answer of `GET /jobs/{id}/allocations`, by time. */
export interface AllocationsResponse {
  readonly allocations: readonly ToldAllocation[];
}
/** Answer of `GET /jobs/{id}/journal`: a page of what its schedulers have written down, in order. */
export interface JournalResponse {
  /** Pieces of text in ASCII; those of one epoch, laid end to end, are lines of JSON. */
  readonly pieces: readonly {
    /** Which of the job's schedulers has written it, and which of its pieces it is, from 0. */
    readonly epoch: number;
    readonly number: number;
    readonly text: string;
  }[];
  /** Ask again with `?cursor=` for more. */
  readonly cursor?: string;
}
/** Answer with any 4xx or 5xx. */
export interface ErrorResponse {
  readonly error: string;
  readonly message: string;
  /** Path of the wrong field from the root of the body, such as `spec.stages[0].name`. */
  readonly field?: string;
}
