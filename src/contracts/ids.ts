import type { Brand } from './units.ts';

/** A job: `<name>-<12 hex digits>`, also the name of its Step Functions execution. */
export type JobId = Brand<string, 'JobId'>;
/** One task of a stage: `<stage>/<index>`, index from 0. */
export type TaskId = Brand<string, 'TaskId'>;
/** One execution of a task: `<stage>/<index>/<number>`, number from 0. Derived, never drawn at random. */
export type AttemptId = Brand<string, 'AttemptId'>;

/** What a job id looks like; anything else is refused before it reaches a store. */
export const jobIdPattern = /^[a-z][a-z0-9-]{0,62}-[0-9a-f]{12}$/;

/** The job id in `text`, or undefined where it is none. */
export const parseJobId = (text: string): JobId | undefined =>
  jobIdPattern.test(text) ? (text as JobId) : undefined;

/** The name of the job in its id: jobs of one name are runs of one recurring job. */
export const jobNameOf = (jobId: JobId): string => jobId.slice(0, jobId.lastIndexOf('-'));

/** What an attempt id looks like. */
export const attemptIdPattern = /^[^/]{1,100}\/(0|[1-9]\d{0,8})\/(0|[1-9]\d{0,8})$/;
/** What a task id looks like. */
export const taskIdPattern = /^[^/]{1,100}\/(0|[1-9]\d{0,8})$/;

/** The id of task `index` of `stage`. */
export const taskIdOf = (stage: string, index: number): TaskId => `${stage}/${index}` as TaskId;

/** The id of execution `number` of a task. */
export const attemptIdOf = (stage: string, index: number, number: number): AttemptId =>
  `${stage}/${index}/${number}` as AttemptId;

/** The parts of an attempt id. Stage names hold no slash, so the split is exact. */
export function attemptParts(id: AttemptId): { stage: string; task: number; attempt: number } {
  const [first, second] = [id.indexOf('/'), id.lastIndexOf('/')];
  return {
    stage: id.slice(0, first),
    task: Number(id.slice(first + 1, second)),
    attempt: Number(id.slice(second + 1)),
  };
}

/** Numbers from here on are no executions but copies of what attempts have left: that of attempt 3 is 1,000,003. */
const firstCopy = 1_000_000;
/** Numbers of attempts, and so of copies of copies, have at most nine digits. */
const lastNumber = 999_999_999;

/** Whether an attempt's number is that of a copy. */
export const isCopy = (attempt: number): boolean => attempt >= firstCopy;

/** Of which attempt, or copy, one with such a number is a copy; undefined where it is none. */
export const copiedFrom = (attempt: number): number | undefined =>
  isCopy(attempt) ? attempt - firstCopy : undefined;

/** Whose name a copy of an attempt's output has, or of a copy's; undefined where there are no more names. */
export function copyIdOf(id: AttemptId): AttemptId | undefined {
  const { stage, task, attempt } = attemptParts(id);
  const number = attempt + firstCopy;
  return number > lastNumber ? undefined : attemptIdOf(stage, task, number);
}

/** The task that an attempt executes. */
export function taskOf(id: AttemptId): TaskId {
  return id.slice(0, id.lastIndexOf('/')) as TaskId;
}
