/**
 * What somebody does who has just installed the command: from an empty directory, a job of one's own, run on own files,
 * failed, understood from the message, mended, submitted to a stack that stays up, watched, its output fetched.
 *
 * `node test/support/first-job.ts outrider` does it with the command of that name; more words are its arguments.
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The job that the README shows, as whoever reads it would copy it. */
async function jobOfReadme(): Promise<string> {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  const [, text] = /```ts\n(import \{ job, read \} from 'outrider';\n[\s\S]*?)```/.exec(readme) ?? [];
  assert.ok(
    text !== undefined && text.split('\n').length <= 31,
    'the README shows a job of at most 30 lines',
  );
  return text;
}

/** The step that fails, as one mends it. */
const failing = /const hits = [\s\S]*?\n\}\);\n/;
const mended = `const hits = read.text().flatMap((line, context): Hit[] => {
  const [page, ms] = line.split('\\t');
  if (page === undefined || ms === undefined) {
    context.count('unreadable');
    return [];
  }
  return [{ page: page.toLowerCase(), ms: Number(ms) }];
});
`;

/** Pages of so many milliseconds each, and a line that is none. */
const pages = ['/', '/Cart', '/search', '/item/7', '/about'];
const hitLines = Array.from({ length: 2_000 }, (_, index) => {
  const at = (index * 7) % pages.length;
  return `${pages[at] ?? ''}\t${String(100 * at + (index % 2))}`;
});
const badLine = 1_234;

/** By a query that any spreadsheet could do: pages in order of their mean time. */
const expected = 'page,hits,meanMs\n/about,400,401\n/item/7,400,301\n/search,400,201\n';

interface Ended {
  readonly exitCode: number | null;
  readonly out: string;
  readonly err: string;
}

/** Does it all in an empty directory; throws where anything is other than it should be. */
export async function firstJob(
  command: readonly [program: string, ...args: string[]],
  dir: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const [program, ...first] = command;
  const start = (args: readonly string[]): ChildProcess =>
    spawn(program, [...first, ...args], { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const run = (...args: readonly string[]): Promise<Ended> => endOf(start(args));

  const jobText = await jobOfReadme();
  await mkdir(join(dir, 'logs'));
  await writeFile(join(dir, 'logs', 'a.txt'), `${hitLines.slice(0, 900).join('\n')}\n`);
  const rest = hitLines.slice(900).toSpliced(badLine - 1 - 900, 0, 'rotated');
  await writeFile(join(dir, 'logs', 'b.txt'), `${rest.join('\n')}\n`);
  await writeFile(join(dir, 'slowest.ts'), jobText);

  const failed = await run('run', './slowest.ts', '--input', 'logs', '--output', 'out');
  assert.equal(failed.exitCode, 1, failed.err);
  const line = String(badLine - 900);
  assert.match(failed.err, /Cannot read properties of undefined \(reading 'trim'\) \(at slowest\.ts:10:\d+/);
  assert.match(failed.err, new RegExp(`logs/b\\.txt:${line}\\b`));

  await writeFile(join(dir, 'slowest.ts'), jobText.replace(failing, mended).replace('.top(', '.tpo('));
  const wrong = await run('run', './slowest.ts', '--input', 'logs', '--output', 'out');
  assert.equal(wrong.exitCode, 2, `a slip of the pen is found before anything starts: ${wrong.err}`);
  assert.match(wrong.err, /^outrider: slowest\.ts/m);

  await writeFile(join(dir, 'slowest.ts'), jobText.replace(failing, mended));
  const local = start(['local', '--slots', '2']);
  const down = endOf(local);
  let jobId = '';
  try {
    await saying(local, 'Ctrl-C ends it.');
    const submitted = await run('submit', './slowest.ts', '--input', 'logs', '--json');
    assert.equal(submitted.exitCode, 0, submitted.err);
    ({ jobId } = JSON.parse(submitted.out) as { jobId: string });
    const watched = await run('watch', jobId);
    assert.equal(watched.exitCode, 0, watched.err);
    const fetched = await run('get', jobId, 'result');
    assert.equal(fetched.exitCode, 0, fetched.err);
    const status = await run('status', jobId, '--json');
    assert.match(status.out, /"unreadable": 1\b/);
  } finally {
    local.kill('SIGINT');
    await down;
  }
  // What happened can be asked when nothing is up any more.
  const attempts = await run('attempts', jobId);
  assert.equal(attempts.exitCode, 0, attempts.err);
  assert.match(attempts.out, /^read\/0\/0 +done /m);
  const parts = (await readdir(join(dir, 'result'))).filter((name) => name.startsWith('part-')).sort();
  const texts = await Promise.all(parts.map((name) => readFile(join(dir, 'result', name), 'utf8')));
  assert.equal(texts.join(''), expected);
}

async function endOf(child: ChildProcess): Promise<Ended> {
  const said = { out: '', err: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (said.out += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said.err += text));
  const [exitCode] = (await once(child, 'close')) as [number | null];
  return { exitCode, ...said };
}

/** Resolves once the process has said so; rejects where it ends before. */
function saying(child: ChildProcess, text: string): Promise<void> {
  let said = '';
  return new Promise((resolve, reject) => {
    const listen = (more: string): void => {
      said += more;
      if (said.includes(text)) resolve();
    };
    child.stdout?.on('data', listen);
    child.stderr?.on('data', listen);
    child.once('close', () => {
      reject(new Error(`ended without saying ${text}: ${said}`));
    });
  });
}

if (import.meta.main) {
  const [program = 'outrider', ...args] = process.argv.slice(2);
  const dir = await mkdtemp(join(tmpdir(), 'outrider-first-'));
  try {
    await firstJob([program, ...args], dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
