import { describe, expect, it } from 'vitest';
import { exec } from '../../../src/operators/exec.ts';
import type { TaskInput } from '../../../src/worker/operator.ts';
import { failureOf } from '../../../src/worker/failure-of.ts';
import { runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

const text = (pattern: RegExp): unknown => expect.stringMatching(pattern);
const input = (text: string | Buffer): TaskInput => sourceOf(Buffer.from(text), seeded(1));
const run = (command: string[], inputs: TaskInput[], more = {}) =>
  runTask(exec, { command, ...more }, inputs);

describe('exec', () => {
  it('gives the lines of all inputs to the program, and its output to the stage', async () => {
    const { text } = await run(['tr', 'a-z', 'A-Z'], [input('one\ntwo'), input('three\n')]);
    expect(text.toString()).toBe('ONE\nTWO\nTHREE\n');
  });

  it('carries bytes through as they are, a missing last newline too', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 10, 254]);
    expect((await run(['cat'], [input(bytes)])).text).toEqual(bytes);
  });

  it('streams more than the pipes hold, both ways at once', async () => {
    const text = 'some line of text\n'.repeat(200_000);
    const result = await run(['cat'], [input(text)]);
    expect(result.text.length).toBe(text.length);
    expect(result.text.equals(Buffer.from(text))).toBe(true);
  });

  it.runIf(process.platform === 'linux')(
    'gives it pipes that can be opened by name, also after all of its input was written',
    async () => {
      const printed: string[] = [];
      const { text } = await runTask(
        exec,
        { command: ['sh', '-c', 'sleep 0.5; sort /dev/stdin > /dev/stdout; echo done > /dev/stderr'] },
        [input('two\none\n')],
        { printed },
      );
      expect([text.toString(), printed]).toEqual(['one\ntwo\n', ['stderr: done']]);
    },
  );

  it('ends, whoever has left it holds its input open and reads nothing', async () => {
    const script = '(setsid sh -c "exec sleep 60" <&0 >/dev/null 2>&1 &); echo one';
    const { text } = await run(['sh', '-c', script], [input('more\n'.repeat(500_000))]);
    expect(text.toString()).toBe('one\n');
  });

  it('lets a program end before it has read its input', async () => {
    const { text } = await run(['head', '-n', '1'], [input('first\n' + 'more\n'.repeat(500_000))]);
    expect(text.toString()).toBe('first\n');
  });

  it('fails with the code and the last words of a program that fails', async () => {
    await expect(
      run(['sh', '-c', 'echo first >&2; echo "no such luck" >&2; exit 3'], [input('')]),
    ).rejects.toThrow('sh ended with code 3: first | no such luck');
  });

  it('fails with the signal that ended a program', async () => {
    await expect(run(['sh', '-c', 'kill -TERM $$'], [input('')])).rejects.toThrow('sh was ended by SIGTERM');
  });

  it.each([
    ['kill -KILL $$', 'was ended by SIGKILL'],
    ['sh -c "kill -KILL \\$\\$"', 'ended with code 137'],
    ['echo "terminate called: std::bad_alloc" >&2; kill -ABRT $$', 'was ended by SIGABRT'],
    ['echo "FATAL ERROR: JavaScript heap out of memory" >&2; exit 134', 'ended with code 134'],
  ])('has run out of memory where machines say so: %s', async (script, how) => {
    const error: unknown = await run(['sh', '-c', script], [input('')]).catch((cause: unknown) => cause);
    expect(failureOf(error, 'operator')).toMatchObject({
      cause: 'out-of-memory',
      message: text(new RegExp(`sh ${how}.*memory`)),
    });
  });

  it.each(['exit 3', 'kill -TERM $$', 'kill -ABRT $$', 'echo "out of memory of it" >&2; exit 1'])(
    'has its own fault otherwise: %s',
    async (script) => {
      const error: unknown = await run(['sh', '-c', script], [input('')]).catch((cause: unknown) => cause);
      expect(failureOf(error, 'operator').cause).toBe('user-code');
    },
  );

  it('says that a program is not there, and what would help', async () => {
    await expect(run(['no-such-program'], [input('x\n')])).rejects.toThrow(
      /^no-such-program cannot be started: .*ENOENT: it must be on the worker's PATH, or come with the stage's "files"/,
    );
  });

  it('says that a program may not be executed, and what would help', async () => {
    await expect(run(['/etc/passwd'], [input('x\n')])).rejects.toThrow(
      /^\/etc\/passwd cannot be started: .*EACCES: make it executable \(chmod \+x\)/,
    );
  });

  it.each(['exit 0', 'exit 3'])('hands on what a program says on standard error: %s', async (end) => {
    const printed: string[] = [];
    const script = `echo one >&2; printf two >&2; ${end}`;
    await runTask(exec, { command: ['sh', '-c', script] }, [input('')], { printed }).catch(() => undefined);
    expect(printed).toEqual(['stderr: one', 'stderr: two']);
  });

  it('fails when its input cannot be read, though the program would be content', async () => {
    const broken: TaskInput = {
      ...input(''),
      async *blocks() {
        yield await Promise.resolve({ bytes: Buffer.from('x\n'), file: 'f', offset: 0 });
        throw new Error('input is broken');
      },
    };
    await expect(run(['cat'], [broken])).rejects.toThrow('input is broken');
  });

  it('tells the program its stage, its task, and what env says', async () => {
    const script = 'echo "$OUTRIDER_STAGE $OUTRIDER_TASK $COLOUR"';
    const { text } = await run(['sh', '-c', script], [input('')], { env: { COLOUR: 'blue' } });
    expect(text.toString()).toBe('stage 0 blue\n');
  });

  it('ends the program when the attempt is cancelled', async () => {
    const cancel = new AbortController();
    const waiting: TaskInput = {
      ...input(''),
      async *blocks() {
        yield await Promise.resolve({ bytes: Buffer.from('x\n'), file: 'f', offset: 0 });
        cancel.abort();
      },
    };
    const task = runTask(exec, { command: ['sh', '-c', 'cat; exec sleep 600'] }, [waiting], {
      signal: cancel.signal,
    });
    await expect(task).rejects.toThrow('cancelled');
  });

  it.each([
    [{}],
    [{ command: [] }],
    [{ command: 'cat' }],
    [{ command: ['cat', 1] }],
    [{ command: ['cat'], env: { 'A B': 'x' } }],
  ])('refuses the options %j', (options) => {
    expect(() => {
      exec.check(options);
    }).toThrow(/options\.(command|env)/);
  });
});
