/** Ends workers that do not end by themselves. */
export interface WorkerStopper {
  /**
   * Ends what works on a node for good, where that can be done: a task on Fargate, which no limit of time ends. No effect
   * on a worker on Lambda, and on one that has ended. Answers what went wrong, if anything. Never throws.
   */
  stop(node: string): Promise<string | undefined>;
}
