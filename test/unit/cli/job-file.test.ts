import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jobOptionsSchema } from '../../../src/cli/job-options.ts';
import type { PreparedJob } from '../../../src/cli/prepare-inputs.ts';
import { prepareJob } from '../../../src/cli/prepare-job.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'outrider-job-file-'));
  await writeFile(join(dir, 'in.txt'), 'a b\n');
  await writeFile(join(dir, 'orders.csv'), 'id\n1\n');
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

const notes: string[] = [];

async function prepare(
  name: string,
  program: string,
  options: Readonly<Record<string, unknown>> = { input: ['in.txt'] },
): Promise<PreparedJob> {
  await writeFile(join(dir, name), program);
  return prepareJob(`./${name}`, jobOptionsSchema.parse(options), {
    cwd: dir,
    inputs: 'any',
    slots: 2,
    note: (text) => notes.push(text),
  });
}

const imports = "import { job, read } from 'outrider';\n";

describe('a job file', () => {
  it('becomes a spec whose stages run one bundle, named by its content', async () => {
    const program = `${imports}
      export default job('words', read.text().keyBy((word) => word).reduce((a) => a).write.ndjson(), { deadline: '5m', deadlineKind: 'hard' });`;
    const prepared = await prepare('words.mjs', program, {
      input: ['in.txt'],
      policy: 'late',
      admission: 'best-effort',
      partitions: '3',
      workerSize: 'large',
    });
    const spec = jobSpecSchema.parse(prepared.specWith(['s3://bucket/input/x/'], 'bucket'));
    expect(spec).toMatchObject({
      ...{ name: 'words', policy: 'late' },
      ...{ deadline: '5m', deadlineKind: 'hard', admission: 'best-effort' },
    });
    const [bundle] = prepared.carried;
    const code = { s3: `s3://bucket/input/files/${bundle?.sha256 ?? ''}`, sha256: bundle?.sha256 };
    expect(spec.stages).toMatchObject([
      {
        name: 'read',
        code,
        inputs: [{ s3: ['s3://bucket/input/x/'], format: 'text' }],
        partitions: 3,
        worker: { size: 'large' },
      },
      { name: 'reduce', code, inputs: [{ stage: 'read', pattern: 'all-to-all' }] },
    ]);
    // The same files make the same bytes, wherever they lie.
    expect((await prepare('words.mjs', program)).carried[0]?.sha256).toBe(bundle?.sha256);
  });

  it('takes inputs by name, and files beside it', async () => {
    const program = `${imports}
      const orders = read.csv({ input: 'orders' }).keyBy(({ id }) => id);
      export default job('x', orders.join(read.text('in.txt').keyBy((line) => line)).write.ndjson());`;
    const prepared = await prepare('named.mjs', program, {
      input: ['orders=orders.csv'],
      skipBadRecords: true,
    });
    expect(prepared.sets.map((files) => files.map(({ path }) => path))).toEqual([
      [join(dir, 'orders.csv')],
      [join(dir, 'in.txt')],
    ]);
    expect(prepared.specWith(['s3://b/1/', 's3://b/2/']).stages[0]).toMatchObject({
      inputs: [{ s3: ['s3://b/1/'], format: 'csv', onBadRecord: 'skip' }],
    });
  });

  it.each<[string, string, string, RegExp, Readonly<Record<string, unknown>>?]>([
    [
      'a wrong type',
      'wrong.ts',
      'export default job("x", read.text().map((line) => line.lenght).write.ndjson());',
      /^wrong\.ts:2:56: TS2551: .*Did you mean 'length'\?$/,
    ],
    [
      'an async function, and why not',
      'wrong.ts',
      'export default job("x", read.text().map(async (line) => line).write.ndjson());',
      /^wrong\.ts:2:41: TS2345: .* is not assignable to type '"functions of a job must not be async"'\.$/,
    ],
    [
      'what does not parse',
      'broken.mjs',
      'export default job("x", read.text().map((line) => ).write.ndjson());',
      /^broken\.mjs cannot be bundled: broken\.mjs:2:51: Unexpected "\)"$/,
    ],
    [
      'an import that is not there',
      'lost.mjs',
      'import "./nowhere.mjs";',
      /^lost\.mjs cannot be bundled: lost\.mjs:2:8: Could not resolve "\.\/nowhere\.mjs"/,
    ],
    [
      'no job',
      'none.mjs',
      'export const x = 1;',
      /^none\.mjs: the default export must be a job: export default job\(name, output\)$/,
    ],
    [
      'an error in its own code',
      'throws.mjs',
      'const settings = () => { throw new TypeError("no settings"); };\nexport default job(settings(), read.text().write.text());',
      /^throws\.mjs: TypeError: no settings \(at settings \(throws\.mjs:2:32\), .*throws\.mjs:3:20\)?\)$/,
    ],
    [
      'what its own code throws and is no error',
      'thrown.mjs',
      'throw { code: 7 };',
      /^thrown\.mjs: \{"code":7\}/,
    ],
    [
      'a wrong graph',
      'graph.mjs',
      'export default job("x", read.text());',
      /^graph\.mjs: job x must be given what it writes.*\(at .*graph\.mjs:2:16\)/,
    ],
    [
      'the end of its process',
      'exits.mjs',
      'process.exit(3);',
      /^exits\.mjs ended its process \(3\) while it was loaded$/,
    ],
    [
      'an input that is not given',
      'input.mjs',
      'export default job("x", read.text().write.text());',
      /^\.\/input\.mjs needs --input/,
      {},
    ],
    [
      'a named input that is not given',
      'orders.mjs',
      'export default job("x", read.text({ input: "orders" }).write.text());',
      /reads an input named "orders": give it with --input orders=<files>/,
      {},
    ],
    [
      'an input that nothing reads',
      'orders.mjs',
      'export default job("x", read.text({ input: "orders" }).write.text());',
      /reads inputs by name: --input orders=<files>; did you mean orders=\?/,
      { input: ['order=in.txt'] },
    ],
    [
      'files that are not there',
      'paths.mjs',
      'export default job("x", read.text("missing/*.txt").write.text());',
      /^read\.text in \.\/paths\.mjs missing\/\*\.txt matches no file$/,
      {},
    ],
    [
      'a column that a file does not have',
      'column.mjs',
      'export default job("x", read.csv({ input: "orders", columns: ["id", "idd"] }).write.csv(["id"]));',
      /^columns of read\.csv in \.\/column\.mjs: .*orders\.csv has no column "idd"; its columns are id; did you mean "id"\?$/,
      { input: ['orders=orders.csv'] },
    ],
    [
      'files of another format',
      'format.mjs',
      'export default job("x", read.ndjson().write.ndjson());',
      /^--input: .*orders\.csv does not look like NDJSON.*: give a reader in \.\/format\.mjs for csv/,
      { input: ['orders.csv'] },
    ],
    [
      'an option of built-in jobs',
      'words.mjs',
      'export default job("x", read.text().write.text());',
      /^--pattern cannot go with a job file/,
      { pattern: 'x' },
    ],
    [
      'a wrong deadline',
      'late.mjs',
      'export default job("x", read.text().write.text(), { deadline: "soon" });',
      /deadline must be a length of time/,
    ],
  ])('is refused for %s', async (_, name, program, message, options) => {
    await expect(prepare(name, imports + program, options)).rejects.toThrow(message);
  });

  it.each([
    [
      'words.cjs',
      "const { job, read } = require('outrider');\nmodule.exports = job('x', read.text().write.text());",
    ],
    ['words.cts', `${imports}export default job('x', read.text().write.text());`],
  ])('may be a module of CommonJS: %s', async (name, program) => {
    const spec = jobSpecSchema.parse(
      (await prepare(name, program)).specWith(['s3://bucket/input/x/'], 'bucket'),
    );
    expect(spec.name).toBe('x');
  });

  it('is checked by the TypeScript and the settings of its own project', async () => {
    const project = join(dir, 'project');
    await mkdir(join(project, 'node_modules'), { recursive: true });
    const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));
    await symlink(typescript, join(project, 'node_modules', 'typescript'));
    const program = `${imports}
      const unused = 1;
      export default job('x', read.text().map((line) => line.length).write.ndjson());`;
    await writeFile(
      join(project, 'tsconfig.json'),
      '{ "compilerOptions": { "strict": true, "noUnusedLocals": true } }',
    );
    await expect(prepare('project/job.ts', program)).rejects.toThrow(
      /^job\.ts:3:13: TS6133: 'unused' is declared/,
    );
    await writeFile(join(project, 'tsconfig.json'), '{ "compilerOptions": { "strict": true } }');
    await expect(prepare('project/job.ts', program)).resolves.toBeDefined();
  });
});

/** A directory with these files, and a program in it, which is prepared. */
async function prepareIn(
  project: string,
  files: Readonly<Record<string, string>>,
  program: string,
): Promise<PreparedJob> {
  await mkdir(join(dir, project), { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, project, name)), { recursive: true });
    await writeFile(join(dir, project, name), text);
  }
  return prepare(`${project}/job.ts`, program);
}

const lengths = "export default job('x', read.text().map((line) => line.length).write.ndjson());\n";
const wrongLengths = lengths.replace('length', 'lenght');

describe('the check of types', () => {
  it.each([
    ['outDir', { outDir: 'out' }],
    ['rootDir', { rootDir: './src', outDir: 'out' }],
    ['output', { composite: true, declarationMap: true, emitDeclarationOnly: true, outDir: 'out' }],
  ])('is made whatever the project says of its output: %s', async (name, compilerOptions) => {
    const files = {
      'tsconfig.json': JSON.stringify({ compilerOptions: { strict: true, ...compilerOptions } }),
      'src/other.ts': 'export const other = 1;\n',
    };
    await expect(prepareIn(name, files, imports + lengths)).resolves.toBeDefined();
    await expect(prepareIn(name, files, imports + wrongLengths)).rejects.toThrow(/^job\.ts:2:56: TS2551: /);
  });

  it('knows the paths, the declarations and the directories of types of the project', async () => {
    const files = {
      'config/base.json':
        '{ "compilerOptions": { "paths": { "@/*": ["../src/*"] }, "typeRoots": ["../own"] } }',
      'tsconfig.json':
        '{ "extends": "./config/base.json", "compilerOptions": { "strict": true, "types": ["thing"] }, "include": ["src"] }',
      'src/lib/parse.ts': 'export const parse = (text: string): number => Number(text);\n',
      'src/global.d.ts': "declare module 'untyped' { const text: string; export default text; }\n",
      'own/thing/index.d.ts': 'declare const ofThing: string;\n',
      'node_modules/untyped/index.js': 'exports.default = "1"; globalThis.ofThing = "2";\n',
    };
    const program = `import { parse } from '@/lib/parse';
import text from 'untyped';
${imports}export const all: number = parse(text) + parse(ofThing);
`;
    await expect(prepareIn('aliases', files, program + lengths)).resolves.toBeDefined();
    await expect(
      prepareIn('aliases', files, program.replace('all: number', 'all: string') + lengths),
    ).rejects.toThrow(/^job\.ts:4:14: TS2322: /);
  });

  it.each(['module', 'commonjs'])('finds this package by name in a project of type %s', async (type) => {
    const files = {
      'package.json': JSON.stringify({ type }),
      'tsconfig.json': '{ "compilerOptions": { "strict": true, "module": "nodenext" } }',
    };
    const program = `${imports}import { runJob } from 'outrider/testing';\nexport const run = runJob;\n`;
    await expect(prepareIn(type, files, program + lengths)).resolves.toBeDefined();
    await expect(prepareIn(type, files, program + wrongLengths)).rejects.toThrow(/^job\.ts:4:56: TS2551: /);
  });

  it('takes without a project what a bundle may hold', async () => {
    const program = `${imports}export const here: string = await Promise.resolve(import.meta.url);\n`;
    await expect(prepareIn('bare', {}, program + lengths)).resolves.toBeDefined();
  });
});

describe('a spec whose stage runs a file', () => {
  const spec = (code: unknown) =>
    JSON.stringify({ name: 'own', stages: [{ name: 'shout', code, inputs: [{ s3: ['in.txt'] }] }] });

  it('carries it as a bundle with what it imports', async () => {
    await writeFile(
      join(dir, 'shout.ts'),
      'export const shout = (text: string): string => text.toUpperCase();\n',
    );
    await writeFile(
      join(dir, 'operator.ts'),
      `import type { Operator } from 'outrider';
       import { shout } from './shout.ts';
       const operator: Operator = { check() {}, async run({ inputs, output }) {
         for (const input of inputs) for await (const { bytes } of input.blocks()) await output.write(Buffer.from(shout(bytes.toString())));
       } };
       export default operator;`,
    );
    const prepared = await prepare('own.json', spec('./operator.ts'), {});
    const [bundle] = prepared.carried;
    expect(Buffer.from(bundle?.bytes ?? []).toString()).toContain('toUpperCase');
    const { stages } = jobSpecSchema.parse(prepared.specWith(['s3://bucket/x/'], 'bucket'));
    const sha256 = bundle?.sha256 ?? '';
    expect(stages[0]?.code).toEqual({ s3: `s3://bucket/input/files/${sha256}`, sha256 });
  });

  it.each([
    ['./nowhere.ts', /^stages\[0\]\.code: \.\/nowhere\.ts cannot be read: there is no such file/],
    [7, /stages\[0\]\.code/],
  ])('refuses %j', async (code, message) => {
    await expect(prepare('own.json', spec(code), {})).rejects.toThrow(message);
  });
});
