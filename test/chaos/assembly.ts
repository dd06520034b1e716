import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readAssembly } from '../../src/local/provision/assembly.ts';
import { planDeployment } from '../../src/local/provision/deployment.ts';

const rootDir = fileURLToPath(new URL('../..', import.meta.url));

/** Synthesizes the CDK app as a deployment does whose jobs may write to a bucket of the user's; answers where. */
export async function synthesizeFor(outputBucket: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'outrider-chaos-assembly-'));
  const context = JSON.stringify({ outputBuckets: [outputBucket] });
  const env = { ...process.env, CDK_OUTDIR: directory, CDK_CONTEXT_JSON: context };
  await promisify(execFile)(process.execPath, [join('cdk', 'app.ts')], { cwd: rootDir, env });
  return directory;
}

/** The function behind each step of a job's execution, by the state machine of the assembly. */
export async function stepFunctions(assemblyDir: string): Promise<ReadonlyMap<string, string>> {
  const { stateMachines } = planDeployment(await readAssembly(assemblyDir), {
    region: 'us-east-1',
    availabilityZones: ['us-east-1a', 'us-east-1b', 'us-east-1c'],
    parameters: {},
  });
  const found = new Map<string, string>();
  for (const { definition } of stateMachines) {
    const { States } = definition as {
      States: Record<string, { Resource?: string; Parameters?: { FunctionName?: string } }>;
    };
    for (const [name, { Resource, Parameters }] of Object.entries(States)) {
      // A step that waits for a token names its function among the parameters.
      const named = Parameters?.FunctionName ?? Resource;
      if (named?.includes(':function:') === true) found.set(name, named);
    }
  }
  return found;
}
