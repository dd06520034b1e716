import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { SystemClock } from '../../../src/adapters/node/system-clock.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { Failure } from '../../../src/contracts/records.ts';
import { fetchBundle } from '../../../src/worker/user-code/bundle.ts';
import { expectNoProcessWith } from '../../support/processes.ts';
import { putSource } from '../../support/worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from '../../support/worker-stage.ts';

const s3 = 's3://code/job.mjs';
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

async function fetch(source: string | undefined, sha256?: string): Promise<Uint8Array> {
  const objects = new MemoryObjectStore();
  if (source !== undefined) await objects.write({ bucket: 'code', key: 'job.mjs' }, Buffer.from(source));
  return fetchBundle(objects, { s3, sha256: sha256 ?? digestOf(source ?? '') });
}

describe('fetchBundle', () => {
  it('reads a bundle once per store and digest', async () => {
    const objects = new MemoryObjectStore();
    const source = 'export default {};';
    await objects.write({ bucket: 'code', key: 'job.mjs' }, Buffer.from(source));
    const ref = { s3, sha256: digestOf(source) };
    const first = await fetchBundle(objects, ref);
    await objects.remove('code', ['job.mjs']);
    expect(await fetchBundle(objects, ref)).toBe(first);
    expect(Buffer.from(first).toString()).toBe(source);
  });

  it.each([
    ['export default {};', '0'.repeat(64), /its SHA-256 is [0-9a-f]{64}, the job says 0{64}/],
    [undefined, undefined, /there is no such object/],
  ])('refuses %j', async (source, sha256, message) => {
    await expect(fetch(source, sha256)).rejects.toThrow(message);
  });
});

/** A worker whose bucket holds a bundle, and the stage that runs it over `text`. */
async function userStage(
  source: string,
  { text = 'x\n', ...more }: Partial<StageOfTest> & { readonly text?: string | Buffer } = {},
): Promise<{ worker: WorkerOfTest; stage: StageOfTest }> {
  const worker = new WorkerOfTest();
  await worker.objects.write({ bucket: 'code', key: 'job.mjs' }, Buffer.from(source));
  const segment = await putSource(worker.objects, { bucket: 'input', key: 'text' }, Buffer.from(text));
  const stage: StageOfTest = {
    run: () => Promise.reject(new Error('user code runs elsewhere')),
    code: { s3, sha256: digestOf(source) },
    inputs: [
      { planned: { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' }, segments: [segment] },
    ],
    ...more,
  };
  return { worker, stage };
}

const operator = (run: string): string => `export default { check() {}, async run(context) { ${run} } };`;

/** How an attempt of user code failed. */
async function failureOf(source: string): Promise<Failure | undefined> {
  const { worker, stage } = await userStage(source);
  expect(await worker.run(stage)).toBe('failed');
  expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  return (await worker.attempt(attemptIdOf('work', 0, 0)))?.failure;
}

describe('user code that fails', () => {
  it.each([
    ['export default 1;', 'bad-input', /its default export must be an operator/],
    ['export const run = () => 1;', 'bad-input', /its default export must be an operator/],
    ['throw new Error("at import");', 'user-code', /^at import$/],
    ['export default {', 'user-code', /SyntaxError/],
    ['export default { check() { throw new Error("bad options"); }, run() {} };', 'user-code', /bad options/],
    [operator('throw new TypeError("at run");'), 'user-code', /^TypeError: at run$/],
    [
      operator('process.exit(3);'),
      'user-code',
      /^the process of the user code ended with code 3 before its task was done: user code called process\.exit\(3\) \(reading s3:\/\/input\/text, bytes 0 to 2\)$/,
    ],
    [
      operator('process.exit();'),
      'user-code',
      /ended with code 0 before its task was done: user code called process\.exit\(\)/,
    ],
    [
      'export default {\n  check() {},\n  run( { },\n};',
      'user-code',
      /^SyntaxError: .+; at s3:\/\/code\/job\.mjs, line [34]$/,
    ],
    [operator('process.abort();'), 'user-code', /was ended by SIGABRT/],
    [operator('process.kill(process.pid, "SIGSEGV"); await new Promise(() => {});'), 'user-code', /SIGSEGV/],
    [
      operator('setTimeout(() => { throw new Error("later"); }); await new Promise(() => {});'),
      'user-code',
      /later/,
    ],
    [operator('Promise.reject(new Error("unseen")); await new Promise(() => {});'), 'user-code', /unseen/],
    [operator('context.count("lines");'), 'user-code', /must be a finite number/],
    [operator('context.progress(2);'), 'user-code', /^progress must be a number from 0 to 1$/],
    [operator('context.progress(NaN);'), 'user-code', /^progress must be a number from 0 to 1$/],
    [operator('context.progress("0.5");'), 'user-code', /^progress must be a number from 0 to 1$/],
    [
      operator('(await import("node:fs")).writeSync(3, "garbage of any kind");'),
      'user-code',
      /file descriptor 3/,
    ],
    [operator('JSON.stringify = Buffer.from = () => { throw 1; };'), 'user-code', /SIGABRT/],
    [operator('throw Object.assign(new Error("x".repeat(1e6)), { name: "Odd" });'), 'user-code', /^Odd: xxx/],
    [operator('throw null;'), 'user-code', /null was thrown, which is no error/],
    ...[
      ['() => "yes"', 'string'],
      ['() => undefined', 'undefined'],
      ['async () => true', 'a promise'],
    ].map(([resumes = '', given = '']): [string, string, RegExp] => [
      `export default { check() {}, resumes: ${resumes}, run() {} };`,
      'user-code',
      new RegExp(`^resumes must answer true or false, not ${given}$`),
    ]),
    [
      // A message of its own, after that with which its process begins: it is ready, and does not say whether it resumes.
      `import { writeSync } from 'node:fs';
       writeSync(3, Buffer.from([0x52, 0x4f, 65, 1, 2, 0, 0, 0, 0x7b, 0x7d])); await new Promise(() => {});`,
      'user-code',
      /^the process of the user code sent a message that makes no sense: .+ file descriptor 3/,
    ],
    ...['NotFound', 'Conflict', 'StoreUnavailable', 'AccessDenied'].map((name): [string, string, RegExp] => [
      operator(`throw Object.assign(new Error('boom'), { name: '${name}' });`),
      'user-code',
      new RegExp(`^${name}: boom$`),
    ]),
    [
      operator("throw Object.assign(new Error('no such field'), { name: 'BadInput' });"),
      'bad-input',
      /^no such field$/,
    ],
  ])('%j has the cause %s', async (source, cause, message) => {
    const failure = await failureOf(source);
    expect(failure?.cause).toBe(cause);
    expect(failure?.message).toMatch(message);
  });

  it.each([
    'write("text")',
    'write(7)',
    'write(undefined)',
    'write([104, 105])',
    'write(new Uint16Array(2))',
    'emit("key", Buffer.from("value"))',
    'emit(Buffer.from("key"), "value")',
    'emit(Buffer.from("key"))',
  ])('is told so where it puts out what is no bytes: %s', async (call) => {
    const failure = await failureOf(operator(`await context.output.${call};`));
    expect(failure?.cause).toBe('user-code');
    expect(failure?.message).toMatch(/must be bytes, a Buffer or Uint8Array, not /);
  });

  /** So many keys, each of them twenty times. */
  const emitting = (keys: number): string => `
    for (let at = 0; at < ${String(keys * 20)}; at++) {
      const wait = context.output.emit(Buffer.from('key ' + at % ${String(keys)}), Buffer.from('1'));
      if (wait !== undefined) await wait;
    }`;
  const combining = (combine: string, keys: number): string =>
    `export default { check() {}, combiner: () => ${combine}, async run(context) { ${emitting(keys)} } };`;

  it.each([
    ['(left, right) => String(Number(left) + Number(right))', 1, 'string'],
    ['(left, right) => String(Number(left) + Number(right))', 500, 'string'],
    ['async (left) => left', 1, 'another object'],
    ['() => undefined', 500, 'undefined'],
  ])(
    'is told so where its combiner %s answers for %i keys what is no bytes',
    async (combine, keys, given) => {
      const { worker, stage } = await userStage(combining(combine, keys), { output: 'sorted' });
      expect(await worker.run(stage)).toBe('failed');
      expect((await worker.attempt(attemptIdOf('work', 0, 0)))?.failure).toMatchObject({
        cause: 'user-code',
        message: expect.stringContaining(
          `combiner: what it returns must be bytes, a Buffer or Uint8Array, not ${given}`,
        ) as string,
      });
    },
  );

  const passOn = 'for await (const { bytes } of input.blocks()) await context.output.write(bytes);';
  const late = 'await context.output.write(Buffer.from("late\\n"));';
  // Its first write is more than the worker takes at once, and run ends within it.
  const slowly = `
    const writes = Promise.withResolvers();
    void (async ([input]) => {
      for await (const { bytes } of input.blocks()) {
        const written = context.output.write(Buffer.alloc(8_000_000, bytes));
        writes.resolve();
        await written;
      }
    })(context.inputs);
    await writes.promise;`;
  const waits = /^run ended while it still read one of its inputs: is an await missing\?/;
  const writes = /^run ended before all of its output was written: is an await missing\?/;
  it.each([
    ['reads and writes', `context.inputs.forEach(async (input) => { ${passOn} });`, writes],
    ['reads', 'void (async ([input]) => { for await (const b of input.blocks()); })(context.inputs);', waits],
    ['waits for a write in a loop over an input', slowly, waits],
    ['writes', `setImmediate(async () => { ${late} });`, writes],
    ['writes, and does not look', `setImmediate(async () => { try { ${late} } catch {} });`, writes],
    ['emits', 'setImmediate(() => context.output.emit(Buffer.from("k"), Buffer.from("v")));', writes],
  ])('is told so where its run has ended and it still %s', async (_, run, message) => {
    const failure = await failureOf(operator(run));
    expect(failure?.cause).toBe('user-code');
    expect(failure?.message).toMatch(message);
  });

  it('has put out all that it was given, also where nobody waits for that', async () => {
    const { worker, stage } = await userStage(
      operator('void context.output.write(Buffer.from("some line\\n".repeat(300_000)));'),
      { output: 'unsorted' },
    );
    expect(await worker.run(stage)).toBe('done');
    expect((await worker.results())[0]).toMatchObject({ recordsOut: 300_000, bytesOut: 300_000 * 11 });
  });

  it.each([
    ['leaves an input', 'for await (const b of input.blocks()) break;'],
    [
      'leaves a stream of rows within another',
      'for await (const r of (async function* () { yield* input.records(); })()) break;',
    ],
    ['leaves an iterator', 'await input.blocks()[Symbol.asyncIterator]().next();'],
    ['gives up what it has read ahead', 'const b = input.blocks(); void b.next(); await b.return();'],
    [
      'gives up what it reads, and does not wait',
      'const b = input.blocks(); void b.next(); void b.return();',
    ],
    ['leaves what it has read ahead', 'void input.blocks().next();'],
    ['leaves a stream', 'for await (const b of Readable.from(input.blocks())) break;'],
    [
      'leaves lines of a stream',
      `const texts = async function* () { for await (const { bytes } of input.blocks()) yield bytes; };
       let lines = 0;
       for await (const line of createInterface({ input: Readable.from(texts()) })) if (++lines === 10) break;`,
    ],
  ])('ends well where it %s', async (_, run) => {
    const text = 'some line\n'.repeat(200_000);
    const imports = `import { createInterface } from 'node:readline'; import { Readable } from 'node:stream';`;
    const source = `${imports} ${operator(`for (const input of context.inputs) { ${run} }`)}`;
    const { worker, stage } = await userStage(source, { text });
    expect(await worker.run(stage)).toBe('done');
  });

  it('says so where it ran out of memory', async () => {
    const { worker, stage } = await userStage(
      operator('const all = []; for (;;) all.push(new Array(1e5).fill(0.5));'),
    );
    const program = { ...worker.deps(stage).userCode.program, heapMb: 32 };
    expect(await worker.run(stage, 0, { userCode: { objects: worker.objects, program } })).toBe('failed');
    expect((await worker.attempt(attemptIdOf('work', 0, 0)))?.failure).toMatchObject({
      cause: 'out-of-memory',
      message: expect.stringMatching(/^the process of the user code ran out of memory( \(|$)/) as string,
    });
  });

  it.each([
    ['passes that on', passOn],
    ['swallows that', `try { ${passOn} } catch {}`],
    [
      'leaves that to nobody',
      `await new Promise((end) => { (async () => { ${passOn} })().then(end, end); });`,
    ],
  ])('fails with what reading an input threw where it %s', async (_, read) => {
    const { worker, stage } = await userStage(operator(`for (const input of context.inputs) { ${read} }`), {
      text: 'first\n',
    });
    const [input] = stage.inputs ?? [];
    const gone = await putSource(worker.objects, { bucket: 'input', key: 'gone' }, Buffer.from('second\n'));
    await worker.objects.remove('input', ['gone']);
    const inputs =
      input === undefined ? [] : [{ planned: input.planned, segments: [...input.segments, gone] }];
    expect(await worker.run({ ...stage, inputs })).toBe('failed');
    expect((await worker.attempt(attemptIdOf('work', 0, 0)))?.failure).toEqual({
      cause: 'bad-input',
      message: 'gone: gone since the job was planned',
    });
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  });
});

describe.runIf(process.platform === 'linux')('the process of user code', () => {
  it.each([
    ['ends well', '', 'done'],
    ['fails', 'throw new Error("no");', 'failed'],
    ['leaves its process', 'process.exit(0);', 'failed'],
  ])('leaves nothing running where it %s', async (_, end, outcome) => {
    const mark = `87${String(process.pid)}${String(end.length)}.25`;
    const { worker, stage } = await userStage(
      operator(`
        setInterval(() => {}, 1); (await import('node:net')).createServer().listen(0);
        (await import('node:child_process')).spawn('sleep', ['${mark}'], { detached: true, stdio: 'ignore' });
        await context.output.write(Buffer.from('text\\n'));
        ${end}`),
    );
    expect(await worker.run(stage)).toBe(outcome);
    await expectNoProcessWith(mark);
    await expectNoProcessWith(worker.scratchRoot);
  });

  it('is killed where it loops and does not hear that it is cancelled', async () => {
    const stop = new AbortController();
    const { worker, stage } = await userStage(
      operator(`await context.output.write(Buffer.from('x\\n')); console.log('looping'); for (;;);`),
    );
    const logged = Promise.withResolvers<undefined>();
    const log = {
      info: (event: string): void => {
        if (event === 'user-output') logged.resolve(undefined);
      },
      warn: (): void => undefined,
    };
    const attempt = worker.run(stage, 0, { log, stopSignal: stop.signal, clock: new SystemClock() });
    await logged.promise;
    stop.abort();
    expect(await attempt).toBe('cancelled');
    await expectNoProcessWith(worker.scratchRoot);
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  });

  it('sees no variable and no file of the worker, and works in the attempt’s directory', async () => {
    const { worker, stage } = await userStage(
      operator(`
        const { readdirSync, readlinkSync } = await import('node:fs');
        const files = readdirSync('/proc/self/fd').flatMap((fd) => { try { return [readlinkSync('/proc/self/fd/' + fd)]; } catch { return []; } });
        const names = Object.keys(process.env).sort();
        console.log(JSON.stringify({ names, files, cwd: process.cwd(), dir: context.scratchDir, tmp: process.env.TMPDIR }));`),
    );
    const texts: string[] = [];
    const log = {
      info: (event: string, facts: Readonly<Record<string, unknown>> = {}): void => {
        if (event === 'user-output') texts.push(String(facts['text']));
      },
      warn: (): void => undefined,
    };
    const environment = { plain: { PATH: '/bin' } };
    expect(await worker.run(stage, 0, { log, environment })).toBe('done');
    const seen = JSON.parse(texts[0] ?? '') as Record<string, string | string[]>;
    expect(seen['names']).toEqual([
      'OUTRIDER_ATTEMPT',
      'OUTRIDER_INPUT',
      'OUTRIDER_OFFSET',
      'OUTRIDER_PROCESS_MARK',
      'OUTRIDER_STAGE',
      'OUTRIDER_TASK',
      'PATH',
      'TMPDIR',
    ]);
    expect(seen['cwd']).toBe(seen['dir']);
    expect(seen['tmp']).toBe(seen['dir']);
    // Sockets, pipes and what Node and /dev/null are: no file.
    const files = (seen['files'] as string[]).filter(
      (file) => file.startsWith('/') && !file.startsWith('/proc/'),
    );
    expect(new Set(files)).toEqual(new Set(['/dev/null']));
  });

  it('prints into the log, a bounded number of lines of bounded length', async () => {
    const { worker, stage } = await userStage(
      operator(`
        for (let i = 0; i < 5000; i++) console.log('line ' + i); console.error('x'.repeat(1e6));
        await new Promise((resolve) => process.stdout.write('', resolve));`),
    );
    const texts: string[] = [];
    const log = {
      info: (event: string, facts: Readonly<Record<string, unknown>> = {}): void => {
        if (event === 'user-output') texts.push(String(facts['text']));
      },
      warn: (): void => undefined,
    };
    expect(await worker.run(stage, 0, { log })).toBe('done');
    expect(texts.length).toBeLessThanOrEqual(1_000);
    expect(texts.at(-1)).toMatch(/^… and more than 1000 lines, which are dropped$/);
    expect(Math.max(...texts.map((text) => text.length))).toBeLessThanOrEqual(4_096);
  });
});
