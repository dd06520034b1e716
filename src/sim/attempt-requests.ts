import type { RequestTally } from '../contracts/requests.ts';

/**
 * What an attempt asks AWS for that has reported so often, its launch and the scheduler's reads of it included: its
 * record, claim, result and the note of its end are a write each, as is every report, which is read once at half the
 * price; it reads a manifest and its input, and writes an object and its index.
 */
export const requestsOfAttempt = (reports: number): RequestTally => ({
  writeUnits: 4 + reports,
  readUnits: 0.5 * (2 + reports),
  lambda: 1,
  get: 2,
  put: 2,
});
