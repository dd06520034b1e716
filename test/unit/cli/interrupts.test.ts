import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { LeftBehindError, ServiceUnavailableError } from '../../../src/cli/failures.ts';
import { endUnread, withInterrupts } from '../../../src/cli/interrupts.ts';

/** What a terminal's Ctrl-C does to this process, without the terminal. */
const interrupt = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
    process.emit('SIGINT', 'SIGINT');
  });

/** Exit codes with which the process would have ended. */
function exits(): (string | number | null | undefined)[] {
  const codes: (string | number | null | undefined)[] = [];
  const exit = vi.spyOn(process, 'exit').mockImplementation(((code) => {
    codes.push(code);
  }) as typeof process.exit);
  onTestFinished(() => {
    exit.mockRestore();
  });
  return codes;
}

describe('an interrupt', () => {
  it('is why the work ended, whatever broke on the way down', async () => {
    const work = withInterrupts(async (signal) => {
      await interrupt(signal);
      throw new ServiceUnavailableError('the stack is gone');
    });
    await expect(work).rejects.toMatchObject({
      name: 'Interrupted',
      message: 'ended by SIGINT',
      cause: { message: 'the stack is gone' },
    });
  });

  it('tells what the work has left behind', async () => {
    const work = withInterrupts(async (signal) => {
      await interrupt(signal);
      throw new LeftBehindError('x stays there');
    });
    await expect(work).rejects.toMatchObject({
      name: 'Interrupted',
      message: 'ended by SIGINT; x stays there',
    });
  });

  it('leaves alone a result that is there all the same, and errors from before', async () => {
    const done = withInterrupts(async (signal) => {
      await interrupt(signal);
      return 'done';
    });
    expect(await done).toBe('done');
    const failed = withInterrupts(() => Promise.reject(new ServiceUnavailableError('down')));
    await expect(failed).rejects.toMatchObject({ name: 'ServiceUnavailable', message: 'down' });
    expect(process.listenerCount('SIGHUP')).toBe(0);
  });

  it('ends the process where it comes again, but for a terminal that hangs up and for echoes', async () => {
    const codes = exits();
    let now = 1_000;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    onTestFinished(() => {
      clock.mockRestore();
    });
    await withInterrupts(async (signal) => {
      await interrupt(signal);
      now += 400;
      process.emit('SIGINT', 'SIGINT');
      now += 10_000;
      process.emit('SIGHUP', 'SIGHUP');
      expect(codes).toEqual([]);
      process.emit('SIGINT', 'SIGINT');
      expect(codes).toEqual([130]);
    });
  });

  it('comes from a reader that has gone, never in the middle of a take-down', async () => {
    const codes = exits();
    const work = withInterrupts(async (signal) => {
      endUnread();
      expect(signal.aborted).toBe(true);
      endUnread();
      // Whoever presses Ctrl-C then does so for the first time.
      process.emit('SIGINT', 'SIGINT');
      await Promise.reject(new ServiceUnavailableError('the stack is gone'));
    });
    await expect(work).rejects.toMatchObject({
      name: 'Interrupted',
      message: 'ended, since nobody reads what it writes any more',
    });
    expect(codes).toEqual([]);
    endUnread();
    expect(codes).toEqual([130]);
  });
});
