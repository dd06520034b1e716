/** How the message of a job that failed over one of its tasks names that. */
export const failedTaskText = (stage: string, task: number): string => `stage ${stage}, task ${task}`;

/** The task (`stage/index`) over which a job failed, by its message; undefined where it names none. */
export function failedTaskIn(message: string): string | undefined {
  const [, stage, task] = /^stage ([a-z][a-z0-9-]*), task (\d{1,9})(?=[ :])/.exec(message) ?? [];
  return stage === undefined || task === undefined ? undefined : `${stage}/${task}`;
}
