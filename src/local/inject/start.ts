/** An environment of a function that is to start, or a Fargate task. */
export interface Start {
  /** Of the function or the task family. */
  readonly name: string;
  /** What the environment is called: the end of its log stream's name, or the task's ARN. */
  readonly place: string;
}

/** Says by how many milliseconds an environment starts later than it would. */
export type StartHook = (start: Start) => number;

/** Says by how many milliseconds its clock is ahead; negative: behind. Asked once for each. */
export type ClockHook = (start: Start) => number;
