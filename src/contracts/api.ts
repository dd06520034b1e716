import { z } from 'zod';
import { jobSpecSchema } from './job-spec.ts';
import type { AttemptRecord, JobRecord } from './records.ts';

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

/** Body of `PUT /jobs/{id}/deadline`: a length of time from now, as in a spec. */
export const deadlineRequestSchema = z.strictObject({ deadline: jobSpecSchema.shape.deadline.unwrap() });

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
/** Answer with any 4xx or 5xx. */
export interface ErrorResponse {
  readonly error: string;
  readonly message: string;
  /** Path of the wrong field, for `InvalidInput`. */
  readonly field?: string;
}
