import * as z from 'zod';

/**
 * What is counted where it is made: each try over HTTP, those that the SDK repeats as well. Of DynamoDB calls and the
 * units that they consumed; of S3 requests by the class that they are billed by (`put`: PUT, POST, COPY and parts of
 * uploads; `get`: GET and HEAD; `list`: listings; `other`: deletions and uploads given up, which are free); `hedged`: of the
 * GETs, and `hedgedParts`: of the PUTs, those that were made since another was late; `lambda`: invocations; `states`:
 * transitions of the state machine; `api`: calls of the REST API; `logBytes`: bytes of logs; `coordinatorMbMs`: megabytes of
 * the coordinator's functions times milliseconds.
 */
export const requestNames = [
  'writeUnits',
  'readUnits',
  'calls',
  'put',
  'get',
  'list',
  'other',
  'hedged',
  'lambda',
  'states',
  'api',
  'logBytes',
  'coordinatorMbMs',
  'hedgedParts',
] as const;
export type RequestName = (typeof requestNames)[number];

/** Counts by name; one that is absent is none. */
export type RequestTally = Readonly<Partial<Record<RequestName, number>>>;

const count = z.number().min(0);

/** A tally as records hold it. */
export const requestTallySchema = z.partialRecord(
  z.enum(requestNames),
  count,
) satisfies z.ZodType<RequestTally>;

/** Requests of a job as `--json` tells them (design §8, which the last four and both kinds of second requests extend). */
export interface JobRequests {
  readonly dynamodb: { readonly writeUnits: number; readonly readUnits: number; readonly calls: number };
  readonly s3: { readonly put: number; readonly get: number; readonly list: number; readonly other: number };
  /** Of the GETs, those that were made since another was late; absent: none. */
  readonly hedgedReads?: number;
  /** Of the PUTs, parts that were sent again since they were late; absent: none. */
  readonly hedgedParts?: number;
  /** Invocations of Lambda functions, workers' and the coordinator's. */
  readonly lambda: number;
  /** State transitions. */
  readonly states: number;
  readonly api: number;
  readonly logBytes: number;
  readonly coordinatorGbSeconds: number;
  /** Attempts whose last counts never came, so that all of this is at least what was made. 0: everything was counted. */
  readonly uncounted: number;
}

/** Dollars at list prices by what they are for; their sum is the job's `dollars`. */
export interface JobCosts {
  /** The time of workers. */
  readonly compute: number;
  /** DynamoDB's units. */
  readonly records: number;
  /** S3's requests. */
  readonly storage: number;
  /** Invocations, the coordinator's functions, state transitions, calls of the API, logs. */
  readonly coordination: number;
}

export const noRequests: JobRequests = {
  dynamodb: { writeUnits: 0, readUnits: 0, calls: 0 },
  s3: { put: 0, get: 0, list: 0, other: 0 },
  lambda: 0,
  states: 0,
  api: 0,
  logBytes: 0,
  coordinatorGbSeconds: 0,
  uncounted: 0,
};

export const noCosts: JobCosts = { compute: 0, records: 0, storage: 0, coordination: 0 };

export const jobRequestsSchema = z.object({
  dynamodb: z.object({ writeUnits: count, readUnits: count, calls: count }),
  s3: z.object({ put: count, get: count, list: count, other: count }),
  hedgedReads: count.exactOptional(),
  hedgedParts: count.exactOptional(),
  lambda: count,
  states: count,
  api: count,
  logBytes: count,
  coordinatorGbSeconds: count,
  uncounted: count,
}) satisfies z.ZodType<JobRequests>;

export const jobCostsSchema = z.object({
  compute: count,
  records: count,
  storage: count,
  coordination: count,
}) satisfies z.ZodType<JobCosts>;
