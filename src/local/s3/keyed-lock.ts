/** Lets one task at a time run for each name; tasks of other names run beside it. */
export class KeyedLock {
  private readonly tails = new Map<string, Promise<unknown>>();

  /** Runs `task` once all earlier ones of that name have ended; answers what it answers. */
  async run<T>(name: string, task: () => Promise<T>): Promise<T> {
    const before = this.tails.get(name);
    const current = before === undefined ? task() : before.then(task, task);
    // The chain must go on after a failure, which is the caller's to see.
    const tail = current.catch(() => undefined);
    this.tails.set(name, tail);
    try {
      return await current;
    } finally {
      if (this.tails.get(name) === tail) this.tails.delete(name);
    }
  }
}
