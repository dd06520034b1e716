import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNoProcessWith, processesWith } from '../support/processes.ts';

/** Two environments, so that every job runs where others have run before. */
const slots = 2;
const text = Buffer.from(
  Array.from({ length: 3_000 }, (_, line) => `key ${(line * 7919) % 3_001} of ${line}\n`).join(''),
);

let system: EmbeddedSystem;
let input: string;

beforeAll(async () => {
  system = await EmbeddedSystem.start({ slots });
  input = await system.put('lines', text);
});
afterAll(async () => {
  await system.stop();
});

async function codeOf(source: string): Promise<{ s3: string; sha256: string }> {
  const sha256 = createHash('sha256').update(source).digest('hex');
  return { s3: await system.put(`${sha256}.mjs`, Buffer.from(source)), sha256 };
}

/** A job of somebody else, and what comes out of it, in any order of lines. */
interface OtherJob {
  readonly stages: JobSpecInput['stages'];
  readonly expected: Buffer;
}

const source = (): { s3: string[]; splitBytes: number }[] => [{ s3: [input], splitBytes: 8_192 }];
const linesOf = (lines: readonly string[]): Buffer =>
  coreutils('sort', [], Buffer.from(lines.map((line) => `${line}\n`).join('')));
const allLines = text.toString().trim().split('\n');

const countWords = (): Buffer => {
  const counts = new Map<string, number>();
  for (const word of text.toString().trim().split(/\s+/)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return linesOf([...counts].map(([word, count]) => `${word}\t${count}`));
};

const others: Readonly<Record<string, () => OtherJob>> = {
  words: () => ({
    stages: [
      { name: 'first', operator: 'tokenize', inputs: source(), partitions: 2 },
      { name: 'second', operator: 'sum-counts', inputs: [{ stage: 'first', pattern: 'all-to-all' }] },
    ],
    expected: countWords(),
  }),
  matches: () => ({
    stages: [{ name: 'first', operator: 'grep', options: { pattern: 'key 1+[0-9]* ' }, inputs: source() }],
    expected: linesOf(allLines.filter((line) => /key 1+[0-9]* /.test(line))),
  }),
  merged: () => ({
    stages: [
      { name: 'first', operator: 'exec', options: { command: ['cat'] }, inputs: source(), partitions: 3 },
      { name: 'second', operator: 'merge-lines', inputs: [{ stage: 'first', pattern: 'all-to-all' }] },
    ],
    expected: linesOf(allLines),
  }),
  capitals: () => ({
    stages: [
      { name: 'first', operator: 'exec', options: { command: ['tr', 'a-z', 'A-Z'] }, inputs: source() },
    ],
    expected: linesOf(allLines.map((line) => line.toUpperCase())),
  }),
};

/** Runs a bundle on both environments at once, and answers how its job ended. */
async function runUserCode(text: string): Promise<string> {
  const code = await codeOf(text);
  const job = await system.ended(
    await system.submit({
      name: 'user',
      stages: [{ name: 'user', code, inputs: [{ s3: [input], splitBytes: 16_384 }] }],
    }),
  );
  return job.state;
}

async function expectOthersExact(): Promise<void> {
  for (const [name, other] of Object.entries(others)) {
    const { stages, expected } = other();
    const job = await system.ended(await system.submit({ name, stages }));
    expect(job.error).toBeUndefined();
    expect(coreutils('sort', [], await system.output(job)).equals(expected)).toBe(true);
  }
}

const bundle = (before: string, run = ''): string => `${before}
export default {
  check() {},
  async run({ inputs, output }) {
    for (const input of inputs) for await (const { bytes } of input.blocks()) await output.write(bytes);
    ${run}
  },
};`;

/** Things that a bundle may do to its process, and that no other job may meet. */
const harms: readonly (readonly [name: string, code: string])[] = [
  ['changes Uint8Array.prototype.set', bundle('Uint8Array.prototype.set = function () {};')],
  [
    'changes Buffer and arrays',
    bundle(
      'Buffer.concat = () => Buffer.alloc(3); Array.prototype.map = () => []; Buffer.prototype.compare = () => 0;',
    ),
  ],
  [
    'changes JSON and promises',
    bundle('', 'JSON.parse = () => ({}); JSON.stringify = () => "{}"; Promise.prototype.then = () => {};'),
  ],
  [
    'changes process and timers',
    bundle(
      'process.exit = () => {}; globalThis.setTimeout = () => 0; globalThis.setImmediate = () => 0; process.env.AWS_ENDPOINT_URL_S3 = "http://127.0.0.1:1";',
    ),
  ],
  [
    'leaves timers, servers and rejections running',
    bundle(
      '',
      `
    setInterval(() => { Promise.reject(new Error('late')); }, 5);
    (await import('node:net')).createServer().listen(0);
    process.on('uncaughtException', () => {}); process.on('unhandledRejection', () => {});`,
    ),
  ],
  ['leaves its process', bundle('', 'process.exit(0);')],
];

describe('jobs on environments that have run user code', () => {
  it.each(harms)(
    'are exact, four of four, where it %s',
    async (_, code) => {
      await runUserCode(code);
      await expectOthersExact();
      await expectNoProcessWith('user-code-host.mjs');
    },
    240_000,
  );
});

/** Tries what somebody would who looks for keys, and prints it. */
const thief = `
const { readFileSync } = await import('node:fs');
const look = (read) => { try { return read(); } catch { return ''; } };
const found = {
  env: process.env,
  own: look(() => readFileSync('/proc/self/environ', 'latin1')),
  line: look(() => readFileSync('/proc/' + process.ppid + '/cmdline', 'latin1')),
};
export default {
  check() {},
  async run({ output }) {
    await output.write(Buffer.from(JSON.stringify(found) + '\\n'));
  },
};`;

describe('user code and programs', () => {
  it('see no credentials in their environment', async () => {
    const secret = system.stack.credentials.secretAccessKey;
    const code = await codeOf(thief);
    const jobs: JobSpecInput[] = [
      { name: 'thief', stages: [{ name: 'look', code, inputs: [{ s3: [input] }] }] },
      {
        name: 'env',
        stages: [
          { name: 'look', operator: 'exec', options: { command: ['env'] }, inputs: [{ s3: [input] }] },
        ],
      },
    ];
    for (const spec of jobs) {
      const job = await system.ended(await system.submit(spec));
      expect(job.error).toBeUndefined();
      const seen = (await system.output(job)).toString();
      expect(seen).toContain('OUTRIDER_STAGE');
      expect(seen).not.toContain(secret);
      expect(seen).not.toMatch(/AWS_|ECS_|OUTRIDER_TABLE|OUTRIDER_DATA_BUCKET/);
    }
  });

  it('are refused credentials at submission, by the name of the field', async () => {
    const code = await codeOf(thief);
    await expect(
      system.submit({
        name: 'asks',
        stages: [{ name: 'look', code, credentials: true, inputs: [{ s3: [input] }] }],
      }),
    ).rejects.toThrow(/stages\[0\]\.credentials must be left out/);
  });
});

describe('a deployment that gives credentials', () => {
  it('gives them to the stage that asks, user code and program alike, and to no other', async () => {
    const generous = await EmbeddedSystem.start({ slots, userCredentials: true });
    try {
      const place = await generous.put('lines', Buffer.from('x\n'));
      const sha256 = createHash('sha256').update(thief).digest('hex');
      const code = { s3: await generous.put('thief.mjs', Buffer.from(thief)), sha256 };
      const program = { operator: 'exec', options: { command: ['env'] } } as const;
      const seen = async (stage: object): Promise<boolean> => {
        const inputs = [{ s3: [place] }];
        const job = await generous.ended(
          await generous.submit({ name: 'asks', stages: [{ name: 'look', inputs, ...stage }] }),
        );
        expect(job.error).toBeUndefined();
        const text = (await generous.output(job)).toString();
        expect(text).not.toContain('AWS_LAMBDA_RUNTIME_API');
        return text.includes('AWS_SECRET_ACCESS_KEY');
      };
      expect(await seen({ code, credentials: true })).toBe(true);
      expect(await seen({ ...program, credentials: true })).toBe(true);
      expect(await seen({ code })).toBe(false);
      expect(await seen(program)).toBe(false);
    } finally {
      await generous.stop();
    }
  }, 240_000);
});

describe('user code on Fargate', () => {
  it('runs from the image, in a process of its own', async () => {
    const code = await codeOf(bundle(''));
    const job = await system.ended(
      await system.submit({
        name: 'fargate',
        stages: [{ name: 'copy', code, worker: { kind: 'fargate' }, inputs: [{ s3: [input] }] }],
      }),
    );
    expect(job.error).toBeUndefined();
    expect((await system.output(job)).equals(text)).toBe(true);
  });
});

describe('a worker that is killed outright', () => {
  it('leaves no process of user code, nor of what that started', async () => {
    const mark = `93${String(process.pid)}.75`;
    const code = await codeOf(`
      (await import('node:child_process')).spawn('sleep', ['${mark}'], { detached: true, stdio: 'ignore' });
      export default { check() {}, run: () => new Promise((resolve) => { setInterval(() => {}, 1000); }) };`);
    const jobId = await system.submit({
      name: 'stuck',
      stages: [{ name: 'stuck', code, inputs: [{ s3: [input] }] }],
    });
    await system.until('a process of the user code', async () =>
      (await processesWith(mark)).length > 0 ? true : undefined,
    );
    await system.api.cancel(jobId);
    for (const { pid } of system.processes('worker')) process.kill(pid, 'SIGKILL');
    await expectNoProcessWith(mark);
    await expectNoProcessWith('user-code-host.mjs');
    expect((await system.ended(jobId)).state).toBe('cancelled');
  });
});
