import type { AttemptRecord } from '../../contracts/records.ts';
import { listPrices, type Prices } from '../../contracts/prices.ts';
import { fargateSizes, type Worker, workerSizes } from '../../contracts/job-spec.ts';
import {
  type JobCosts,
  type JobRequests,
  requestNames,
  type RequestTally,
} from '../../contracts/requests.ts';
import { addTallies } from './request-tally.ts';

/** Fargate bills at least a minute. */
const fargateMinimumMs = 60_000;
const bytesPerGb = 1024 ** 3;

/** What the time of one attempt on its worker costs in dollars; at list prices unless told. */
export function computeDollars(worker: Worker, workerMs: number, prices: Prices = listPrices): number {
  if (worker.kind === 'lambda') {
    return (workerMs / 1000) * (workerSizes[worker.size] / 1024) * prices.lambdaGbSecond;
  }
  if (workerMs <= 0) return 0; // It has not begun, and may never.
  const { vcpu, memoryMb } = fargateSizes[worker.size];
  const hours = Math.max(workerMs, fargateMinimumMs) / 3_600_000;
  const { fargateVcpuHour, fargateGbHour, publicAddressHour } = prices;
  return hours * (vcpu * fargateVcpuHour + (memoryMb / 1024) * fargateGbHour + publicAddressHour);
}

/** What further time of attempts on such a worker costs in dollars, on top of time that was billed before. */
export const moreDollars = (worker: Worker, moreMs: number, prices?: Prices): number =>
  computeDollars(worker, fargateMinimumMs + moreMs, prices) -
  computeDollars(worker, fargateMinimumMs, prices);

/** A tally as `--json` tells it. `uncounted`: attempts whose last counts never came. */
export const requestsOf = (tally: RequestTally, uncounted: number): JobRequests => ({
  dynamodb: {
    writeUnits: rounded(tally.writeUnits),
    readUnits: rounded(tally.readUnits),
    calls: tally.calls ?? 0,
  },
  s3: { put: tally.put ?? 0, get: tally.get ?? 0, list: tally.list ?? 0, other: tally.other ?? 0 },
  ...(tally.hedged === undefined ? {} : { hedgedReads: tally.hedged }),
  ...(tally.hedgedParts === undefined ? {} : { hedgedParts: tally.hedgedParts }),
  lambda: tally.lambda ?? 0,
  states: tally.states ?? 0,
  api: tally.api ?? 0,
  logBytes: tally.logBytes ?? 0,
  coordinatorGbSeconds: rounded((tally.coordinatorMbMs ?? 0) / 1024 / 1000),
  uncounted,
});

/** What a tally costs, at list prices unless told, beside `compute` dollars of workers' time. */
export const costsOf = (tally: RequestTally, compute: number, prices: Prices = listPrices): JobCosts => ({
  compute: dollars(compute),
  records: dollars((tally.writeUnits ?? 0) * prices.dynamoWrite + (tally.readUnits ?? 0) * prices.dynamoRead),
  storage: dollars(((tally.put ?? 0) + (tally.list ?? 0)) * prices.s3Put + (tally.get ?? 0) * prices.s3Get),
  coordination: dollars(
    (tally.lambda ?? 0) * prices.lambdaRequest +
      ((tally.coordinatorMbMs ?? 0) / 1024 / 1000) * prices.lambdaGbSecond +
      (tally.states ?? 0) * prices.stateTransition +
      (tally.api ?? 0) * prices.apiCall +
      ((tally.logBytes ?? 0) / bytesPerGb) * prices.logGb,
  ),
});

/** What a tally costs in one sum, as `costsOf` adds it up: cheap enough for each attempt of each tick. */
export const tallyDollars = (tally: RequestTally, prices: Prices = listPrices): number =>
  (tally.writeUnits ?? 0) * prices.dynamoWrite +
  (tally.readUnits ?? 0) * prices.dynamoRead +
  ((tally.put ?? 0) + (tally.list ?? 0)) * prices.s3Put +
  (tally.get ?? 0) * prices.s3Get +
  (tally.lambda ?? 0) * prices.lambdaRequest +
  ((tally.coordinatorMbMs ?? 0) / 1024 / 1000) * prices.lambdaGbSecond +
  (tally.states ?? 0) * prices.stateTransition +
  (tally.api ?? 0) * prices.apiCall +
  ((tally.logBytes ?? 0) / bytesPerGb) * prices.logGb;

/** Requests with those of a tally on top. */
export const addRequests = (requests: JobRequests, tally: RequestTally): JobRequests =>
  requestsOf(addTallies(tallyOf(requests), tally), requests.uncounted);

/** The larger of each count of two tallies. */
const largest = (a: RequestTally, b: RequestTally): RequestTally =>
  Object.fromEntries(
    requestNames.flatMap((name) => {
      const most = Math.max(a[name] ?? 0, b[name] ?? 0);
      return most > 0 ? [[name, most]] : [];
    }),
  );

/** An attempt as its record leaves it, as far as its requests go. */
type CountedAttempt = Pick<AttemptRecord, 'state' | 'claimedAt' | 'progress'>;

/** Whether an attempt of a job that has ended has worked and never told all that it asked for: it died, or works on. */
const isUncounted = ({ state, claimedAt, progress }: CountedAttempt): boolean =>
  claimedAt !== undefined && (state === 'lost' || state === 'running' || progress?.requests === undefined);

/**
 * Requests of a job whose attempts have stopped, from what they and its coordinator have told; no less than was `known`
 * before. The last words of copies that lost come after the job's end.
 */
export function lastRequests(
  known: JobRequests,
  attempts: readonly CountedAttempt[],
  coordination: RequestTally,
): JobRequests {
  const told = attempts.reduce<RequestTally>(
    (sum, { progress }) => addTallies(sum, progress?.requests ?? {}),
    coordination,
  );
  const uncounted = attempts.filter(isUncounted).length;
  return requestsOf(largest(tallyOf(known), told), Math.max(known.uncounted, uncounted));
}

/** The tally behind requests as they are told. */
const tallyOf = ({ dynamodb, s3, coordinatorGbSeconds, ...others }: JobRequests): RequestTally => ({
  ...dynamodb,
  ...s3,
  ...(others.hedgedReads === undefined ? {} : { hedged: others.hedgedReads }),
  ...(others.hedgedParts === undefined ? {} : { hedgedParts: others.hedgedParts }),
  lambda: others.lambda,
  states: others.states,
  api: others.api,
  logBytes: others.logBytes,
  coordinatorMbMs: coordinatorGbSeconds * 1024 * 1000,
});

/** What requests cost, at list prices unless told, beside the compute that is known. */
export const costsOfRequests = (requests: JobRequests, compute: number, prices?: Prices): JobCosts =>
  costsOf(tallyOf(requests), compute, prices);

/** The sums of costs, part by part. */
export const addCosts = (a: JobCosts, b: JobCosts): JobCosts => ({
  compute: dollars(a.compute + b.compute),
  records: dollars(a.records + b.records),
  storage: dollars(a.storage + b.storage),
  coordination: dollars(a.coordination + b.coordination),
});

/** The sum of the parts, which is what a job has cost. */
export const totalOf = ({ compute, records, storage, coordination }: JobCosts): number =>
  dollars(compute + records + storage + coordination);

/** Fractions far below a cent matter to small jobs, the last bits of a sum to nobody. */
const dollars = (value: number): number => Math.round(value * 1e10) / 1e10;
/** Reads count by halves of a unit. */
const rounded = (value: number | undefined): number => Math.round((value ?? 0) * 1e3) / 1e3;
