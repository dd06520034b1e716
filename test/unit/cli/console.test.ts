import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { untilGone } from '../../../src/cli/console.ts';

/** A stream of which each write fails, as those of a process do to which nobody listens: it stays, and fails again. */
function failingStream(code: string) {
  const written: string[] = [];
  const stream = new Writable({
    autoDestroy: false,
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      written.push(text);
      done(Object.assign(new Error(`write ${code}`), { code }));
    },
  });
  return { stream, written };
}

describe('a stream whose reader has gone', () => {
  it.each(['EPIPE', 'EIO', 'ENXIO', 'ECONNRESET'])(
    'is told of once and written to no more: %s',
    async (code) => {
      const { stream, written } = failingStream(code);
      let told = 0;
      const write = untilGone(stream, () => told++);
      for (const text of ['a', 'b', 'c']) {
        write(text);
        await setImmediate();
      }
      stream.emit('error', Object.assign(new Error('again'), { code }));
      expect({ told, written }).toEqual({ told: 1, written: ['a'] });
    },
  );

  it('is none where writing fails for another reason', () => {
    const { stream } = failingStream('ENOSPC');
    let told = 0;
    untilGone(stream, () => told++);
    expect(() => stream.emit('error', Object.assign(new Error('full'), { code: 'ENOSPC' }))).toThrow('full');
    expect(told).toBe(0);
  });
});
