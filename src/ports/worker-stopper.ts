/** Ends workers that do not end by themselves. */
export interface WorkerStopper {
  /**
   * Ends what works on a node for good, where that can be done: a task on Fargate, which no limit of time ends. No effect
   * on a worker on Lambda, and on one that has ended. Answers what went wrong, if anything. Never throws.
   */
  stop(node: string): Promise<string | undefined>;
  /**
   * Of these nodes, the first 10,000 on Fargate, those on which a task is that nobody has stopped and that has not ended by itself;
   * and what kept it from asking for others, if anything. Never throws.
   */
  living(nodes: readonly string[]): Promise<{ readonly nodes: readonly string[]; readonly wrong?: string }>;
}
