import { ExitCode, InterruptedError } from './failures.ts';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A terminal and the launcher may both pass on one keypress. */
const sameKeypressMs = 500;

/**
 * Runs `work` with a signal that fires, with an `InterruptedError`, at the first SIGINT, SIGTERM or SIGHUP. A
 * second one, later than an echo of the first could be, ends the process at once.
 */
export async function withInterrupts<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let firstAt: number | undefined;
  const interrupt = (name: string): void => {
    const now = performance.now();
    if (firstAt === undefined) {
      firstAt = now;
      controller.abort(new InterruptedError(`ended by ${name}`));
    } else if (now - firstAt > sameKeypressMs) {
      process.exit(ExitCode.interrupted);
    }
  };
  for (const name of signals) process.on(name, interrupt);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of signals) process.off(name, interrupt);
  }
}
