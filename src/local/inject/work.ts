/** A process that has been given work: an asynchronous event of a function, or a Fargate task. */
export interface Work {
  /** Of the function or the task family. */
  readonly name: string;
  /** What its execution environment is called: the end of its log stream's name, or its task's ARN. */
  readonly place: string;
  /** Leads a process group of its own. */
  readonly pid: number;
  /** The name of its availability zone, of a task; absent: nobody chose one. */
  readonly zone?: string;
  /** Whether it is still at this very work: a warm environment outlives its events. */
  isUnderWay(): boolean;
  /**
   * Takes its place away with a notice of so long, as Spot does: SIGTERM now, SIGKILL then. Answers false, and does nothing, where it
   * was told to stop before. Tasks alone have it.
   */
  interrupt?(noticeMs: number): boolean;
  /** Says before it is killed that it is lost with its place, and did not end by itself. */
  lose?(): void;
  /** Ends it as its host ends one that takes more memory than it has. */
  exhaust?(): void;
}

/** Told of each work as it begins. */
export type WorkHook = (work: Work) => void;
