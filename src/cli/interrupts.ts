import { ExitCode, InterruptedError } from './failures.ts';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A terminal and the launcher may both pass on one keypress. */
const sameKeypressMs = 500;

/**
 * Runs `work` with a signal that fires, with an `InterruptedError`, at the first SIGINT, SIGTERM or SIGHUP; what
 * `work` throws after that is an `InterruptedError` too. A second one, later than an echo of the first could be,
 * ends the process at once.
 */
export async function withInterrupts<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let firstAt: number | undefined;
  let endedBy = '';
  const interrupt = (name: string): void => {
    const now = performance.now();
    if (firstAt === undefined) {
      firstAt = now;
      endedBy = `ended by ${name}`;
      controller.abort(new InterruptedError(endedBy));
    } else if (now - firstAt > sameKeypressMs) {
      process.exit(ExitCode.interrupted);
    }
  };
  for (const name of signals) process.on(name, interrupt);
  try {
    return await work(controller.signal);
  } catch (error) {
    // Whatever broke after the signal broke because of it: the user wants to hear that it ended, not how.
    if (controller.signal.aborted && error !== controller.signal.reason)
      throw new InterruptedError(endedBy, {}, { cause: error });
    throw error;
  } finally {
    for (const name of signals) process.off(name, interrupt);
  }
}
