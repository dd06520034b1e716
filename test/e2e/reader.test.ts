import { describe, expect, it } from 'vitest';
import { Workplace } from './command.ts';

describe('a command whose reader has gone', () => {
  it.each([['--help'], ['experiments', '--json']])('ends without a word: %s', async (...args) => {
    const place = await Workplace.make();
    const started = place.start(...args);
    started.process.stdout?.destroy();
    // What a shell says of a command that an interrupt ended.
    expect(await started.finished).toEqual({ exitCode: 130, out: '', err: '' });
  });
});
