import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Setting } from '../../src/contracts/settings.ts';
import { synthesize } from '../../src/local/provision/synthesize.ts';

const rootDir = fileURLToPath(new URL('../..', import.meta.url));
const defaultAssembly = join(rootDir, 'cdk.out');

const freshDir = (): Promise<string> => mkdtemp(join(tmpdir(), 'outrider-assembly-'));

/** Synthesizes the CDK app as `cdk deploy -c KEY=VALUE …` does; answers where. Whoever asks removes it. */
export async function synthesizeWith(context: Readonly<Record<string, unknown>>): Promise<string> {
  const directory = await freshDir();
  const env = { ...process.env, CDK_OUTDIR: directory, CDK_CONTEXT_JSON: JSON.stringify(context) };
  await promisify(execFile)(process.execPath, [join('cdk', 'app.ts')], { cwd: rootDir, env });
  return directory;
}

interface Template {
  readonly Resources?: Readonly<Record<string, { readonly Properties?: Record<string, unknown> }>>;
}

/** The deployment as it is by default, but that worker functions run for so long; answers where it lies. */
export async function withWorkersOf(timeoutS: number): Promise<string> {
  await synthesize({ outDir: defaultAssembly });
  const directory = await freshDir();
  await cp(defaultAssembly, directory, { recursive: true });
  const names = (await readdir(directory)).filter((name) => name.endsWith('.template.json'));
  let changed = 0;
  for (const name of names) {
    const template = JSON.parse(await readFile(join(directory, name), 'utf8')) as Template;
    for (const { Properties = {} } of Object.values(template.Resources ?? {})) {
      const { Variables = {} } = (Properties['Environment'] ?? {}) as { Variables?: Record<string, unknown> };
      if (Setting.lambdaMs in Variables) Variables[Setting.lambdaMs] = String(timeoutS * 1_000);
      if (!String(Properties['Description']).startsWith('Outrider: runs one attempt')) continue;
      Properties['Timeout'] = timeoutS;
      changed += 1;
    }
    await writeFile(join(directory, name), JSON.stringify(template));
  }
  if (changed === 0) {
    await rm(directory, { recursive: true, force: true });
    throw new Error('the templates have no function of workers');
  }
  return directory;
}
