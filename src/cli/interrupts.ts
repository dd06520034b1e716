import { ExitCode, InterruptedError, LeftBehindError } from './failures.ts';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A terminal and the launcher may both pass on one keypress. */
const sameKeypressMs = 500;

/** Ends each work that is under way, as its first signal would. */
const underWay = new Set<(why: string) => void>();

/**
 * Runs `work` with a signal that fires, with an `InterruptedError`, at the first SIGINT, SIGTERM or SIGHUP; what
 * `work` throws after that is an `InterruptedError` too. A second SIGINT or SIGTERM, later than an echo of the first could
 * be, ends the process at once; a terminal that is closed may hang up more than once, and nobody waits in front of it.
 */
export async function withInterrupts<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const { signal } = controller;
  const end = (why: string): void => {
    if (!signal.aborted) controller.abort(new InterruptedError(why));
  };
  let firstAt: number | undefined;
  const interrupt = (name: string): void => {
    const now = performance.now();
    if (firstAt === undefined) {
      firstAt = now;
      end(`ended by ${name}`);
    } else if (name !== 'SIGHUP' && now - firstAt > sameKeypressMs) {
      process.exit(ExitCode.interrupted);
    }
  };
  for (const name of signals) process.on(name, interrupt);
  underWay.add(end);
  try {
    return await work(signal);
  } catch (error) {
    const reason: unknown = signal.reason;
    // Whatever broke after the signal broke because of it: the user wants to hear that it ended, not how.
    if (reason instanceof InterruptedError && error !== reason) {
      // But for what nothing else names.
      const left = error instanceof LeftBehindError ? `; ${error.message}` : '';
      throw new InterruptedError(`${reason.message}${left}`, {}, { cause: error });
    }
    throw error;
  } finally {
    underWay.delete(end);
    for (const name of signals) process.off(name, interrupt);
  }
}

/**
 * Ends the command since nobody reads what it writes any more: work under way as its first signal would, and the process at
 * once where there is none, which leaves nothing to be taken down. Never in the middle of that.
 */
export function endUnread(): void {
  if (underWay.size === 0) process.exit(ExitCode.interrupted);
  for (const end of underWay) end('ended, since nobody reads what it writes any more');
}
