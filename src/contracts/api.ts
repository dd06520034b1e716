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
}
/** Answer of `GET /jobs/{id}/attempts`. */
export interface AttemptsResponse {
  readonly attempts: readonly AttemptRecord[];
}
/** Answer with any 4xx or 5xx. */
export interface ErrorResponse {
  readonly error: string;
  readonly message: string;
  /** Path of the wrong field, for `InvalidInput`. */
  readonly field?: string;
}
