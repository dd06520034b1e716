import { type JobId, parseJobId } from '../contracts/ids.ts';
import { oneLine } from '../report/format.ts';
import { badInput } from './failures.ts';

/** The id that a command was given for a job, before anybody is asked. Throws `InvalidInputError` where it can be none. */
export function givenJob(text: string): JobId {
  const jobId = parseJobId(text);
  if (jobId !== undefined) return jobId;
  throw badInput(
    `"${oneLine(text)}" is no id of a job, such as wordcount-0123456789ab: "outrider list" names them`,
  );
}
