import { describe, expect, it } from 'vitest';
import { exitCodeOf } from '../../../src/cli/failures.ts';
import { refusedStart } from '../../../src/cli/start-stack.ts';
import { PortTakenError } from '../../../src/local/http/listen.ts';

const place = '/data/.outrider';
/** An error as Node gives it. */
const systemError = (text: string, fields: object): Error => Object.assign(new Error(text), fields);

describe('a stack that the system does not let start', () => {
  it.each([
    [
      systemError('ENOSPC: no space left on device, write', { code: 'ENOSPC', syscall: 'write' }),
      'the stack cannot be started, since its data cannot be written to /data/.outrider: the disk is full; name another place with --state-dir',
    ],
    [
      systemError("EACCES: permission denied, mkdir '/data/.outrider/s3'", {
        ...{ code: 'EACCES', syscall: 'mkdir', path: '/data/.outrider/s3' },
      }),
      'the stack cannot be started, since its data cannot be written to /data/.outrider: permission denied; name another place with --state-dir',
    ],
    [
      systemError("EACCES: permission denied, open '/data/.outrider-2/x'", {
        ...{ code: 'EACCES', syscall: 'open', path: '/data/.outrider-2/x' },
      }),
      'the stack cannot be started: /data/.outrider-2/x: permission denied',
    ],
    [
      systemError("ENOENT: no such file or directory, open '/nope/outrider-synth-1.lock'", {
        ...{ code: 'ENOENT', syscall: 'open', path: '/nope/outrider-synth-1.lock' },
      }),
      'the stack cannot be started: /nope/outrider-synth-1.lock: there is no such file or directory',
    ],
    [
      systemError('listen EACCES: permission denied 127.0.0.1:80', {
        ...{ code: 'EACCES', syscall: 'listen', address: '127.0.0.1', port: 80 },
      }),
      'port 80 cannot be listened at: permission denied; give another --port, such as one above 1023',
    ],
    [new PortTakenError(80), 'port 80 is taken: end what listens there, or give another --port'],
  ])('is told of by what would be right, with exit code 2: %s', (error, message) => {
    const refuse = (): never => refusedStart(error, place);
    expect(refuse).toThrow(expect.objectContaining({ message, cause: error }));
    try {
      refuse();
    } catch (thrown) {
      expect(exitCodeOf(thrown)).toBe(2);
    }
  });

  it('is told of as unavailable where the machine has no room for its processes', () => {
    const busy = systemError('spawn node EAGAIN', { code: 'EAGAIN', syscall: 'spawn node' });
    try {
      refusedStart(busy, place);
    } catch (thrown) {
      expect(thrown).toMatchObject({ message: 'the stack cannot be started: spawn node EAGAIN' });
      expect(exitCodeOf(thrown)).toBe(3);
    }
    expect.assertions(2);
  });

  it('is thrown as it is where that is no refusal of the system', () => {
    const error = new Error('a template is wrong');
    expect(() => refusedStart(error, place)).toThrow(error);
  });
});
