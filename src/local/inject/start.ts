/** An environment of a function that is to start. */
export interface Start {
  /** Of the function. */
  readonly name: string;
  /** What the environment is called: the end of its log stream's name. */
  readonly place: string;
}

/** Says by how many milliseconds an environment starts later than it would. */
export type StartHook = (start: Start) => number;
