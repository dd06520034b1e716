import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AssetHashType, DockerImage, Stack } from 'aws-cdk-lib';
import { DockerImageAsset, Platform } from 'aws-cdk-lib/aws-ecr-assets';
import { ContainerImage } from 'aws-cdk-lib/aws-ecs';
import { type AssetCode, Code } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { buildSync } from 'esbuild';

const functionsDir = fileURLToPath(new URL('../../functions/', import.meta.url));

/** Some of the AWS SDK's dependencies are CommonJS and call `require` for Node's own modules. */
const requireBanner =
  "import { createRequire as outriderRequire } from 'node:module'; const require = outriderRequire(import.meta.url);";

/** Bundles an entry below `functions/` with all its dependencies into one ES module for Node 24. */
function bundle(entry: string, outfile: string): void {
  buildSync({
    entryPoints: [join(functionsDir, entry)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    mainFields: ['module', 'main'],
    banner: { js: requireBanner },
    minifySyntax: true,
    minifyWhitespace: true,
    // Error names and stack traces in logs are read by people.
    keepNames: true,
    legalComments: 'none',
    logLevel: 'error',
  });
}

/** A module that another one starts as a process: `functions/<entry>.ts`, bundled beside it under its own name. */
export type ProcessModule = 'worker/user-code-host';

function bundleProcesses(modules: readonly ProcessModule[], outputDir: string): void {
  for (const module of modules) bundle(`${module}.ts`, join(outputDir, `${basename(module)}.mjs`));
}

/**
 * Code of a Lambda function: `functions/<name>/handler.ts` as `index.mjs`, exporting `handler`, and beside it the
 * modules that it starts as processes.
 *
 * esbuild is called in this process and not through NodejsFunction, which would start `npx` for each function;
 * the asset's hash is that of the bundle, so an unchanged bundle is never deployed again.
 */
export function handlerCode(name: string, processes: readonly ProcessModule[] = []): AssetCode {
  return Code.fromAsset(join(functionsDir, name), {
    assetHashType: AssetHashType.OUTPUT,
    bundling: {
      // Never used: bundling succeeds locally or throws.
      image: DockerImage.fromRegistry('unused'),
      local: {
        tryBundle: (outputDir) => {
          bundle(`${name}/handler.ts`, join(outputDir, 'index.mjs'));
          bundleProcesses(processes, outputDir);
          return true;
        },
      },
    },
  });
}

/** Runs no command, so that it builds for arm64 on machines of other kinds without emulation. */
const dockerfile = `FROM public.ecr.aws/docker/library/node:24-slim
WORKDIR /app
COPY *.mjs ./
USER node
ENV NODE_ENV=production TMPDIR=/tmp
CMD ["node", "main.mjs"]
`;

/**
 * Image of a Fargate task: a Dockerfile, `functions/<name>/main.ts` as `main.mjs`, and the modules that it starts as
 * processes. Synthesis writes the
 * build's directory only; Docker is needed when it is deployed.
 */
export function mainImage(
  scope: Construct,
  id: string,
  name: string,
  processes: readonly ProcessModule[] = [],
): ContainerImage {
  const directory = mkdtempSync(join(tmpdir(), 'outrider-image-'));
  try {
    const main = join(directory, 'main.mjs');
    if (Stack.of(scope).bundlingRequired) {
      bundle(`${name}/main.ts`, main);
      bundleProcesses(processes, directory);
    } else writeFileSync(main, '// Bundling was skipped.\n');
    writeFileSync(join(directory, 'Dockerfile'), dockerfile);
    // Copies the directory into the assembly at once.
    const asset = new DockerImageAsset(scope, id, { directory, platform: Platform.LINUX_ARM64 });
    return ContainerImage.fromDockerImageAsset(asset);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
