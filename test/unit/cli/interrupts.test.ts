import { describe, expect, it } from 'vitest';
import { ServiceUnavailableError } from '../../../src/cli/failures.ts';
import { withInterrupts } from '../../../src/cli/interrupts.ts';

/** What a terminal's Ctrl-C does to this process, without the terminal. */
const interrupt = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
    process.emit('SIGINT', 'SIGINT');
  });

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
});
