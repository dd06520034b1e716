import * as z from 'zod';
import { type JobId, parseJobId } from '../../contracts/ids.ts';
import { epochMs } from '../../contracts/units.ts';

/** A moment, in milliseconds. */
export const timeField = z.number().transform(epochMs);

/** The id of a job. */
export const jobIdField = z.string().transform((text, context): JobId => {
  const jobId = parseJobId(text);
  if (jobId !== undefined) return jobId;
  context.addIssue('is no job id');
  return z.NEVER;
});
