import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AssetHashType, DockerImage, Stack } from 'aws-cdk-lib';
import { DockerImageAsset, Platform } from 'aws-cdk-lib/aws-ecr-assets';
import { ContainerImage } from 'aws-cdk-lib/aws-ecs';
import { type AssetCode, Code } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { buildSync } from 'esbuild';
import { requireBanner } from '../../src/lib/require-banner.ts';
import { installNativeModules } from './native-modules.ts';

const functionsDir = fileURLToPath(new URL('../../functions/', import.meta.url));
/** In a package the functions are JavaScript, as this module is there. */
const extension = extname(import.meta.url);

const nodeHttp = join(functionsDir, `shared/node-http${extension}`);

/** Bundles an entry below `functions/`, named without its extension, with all its dependencies into one ES module for Node 24. */
function bundle(entry: string, outfile: string): void {
  buildSync({
    entryPoints: [join(functionsDir, `${entry}${extension}`)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    alias: { http: nodeHttp, 'node:http': nodeHttp },
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
export type ProcessModule = 'worker/user-code-host' | 'worker/runtime';

function bundleProcesses(modules: readonly ProcessModule[], outputDir: string): void {
  for (const module of modules) bundle(module, join(outputDir, `${basename(module)}.mjs`));
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
          bundle(`${name}/handler`, join(outputDir, 'index.mjs'));
          bundleProcesses(processes, outputDir);
          return true;
        },
      },
    },
  });
}

const nodeImage = 'public.ecr.aws/docker/library/node:24-slim';

/** Runs no command, so that it builds for arm64 on machines of other kinds without emulation. */
const dockerfile = `FROM ${nodeImage}
WORKDIR /app
COPY . ./
USER node
ENV NODE_ENV=production TMPDIR=/tmp
CMD ["node", "main.mjs"]
`;

/** The worker in an image of the user's own, with Node beside what is there; its user stays as it is. */
const dockerfileOn = (image: string): string => `FROM ${nodeImage} AS node
FROM ${image}
COPY --from=node /usr/local/bin/node /opt/outrider/node
WORKDIR /app
COPY . ./
ENV NODE_ENV=production TMPDIR=/tmp
ENTRYPOINT []
CMD ["/opt/outrider/node", "main.mjs"]
`;

/**
 * Image of a Fargate task: a Dockerfile, `functions/<name>/main.ts` as `main.mjs`, and the modules that it starts as
 * processes; on `baseImage` where the programs of stages need more than Node. Synthesis writes the
 * build's directory only; Docker is needed when it is deployed.
 */
export function mainImage(
  scope: Construct,
  id: string,
  name: string,
  {
    processes = [],
    native = false,
    baseImage,
  }: {
    readonly processes?: readonly ProcessModule[];
    readonly native?: boolean;
    readonly baseImage?: string | undefined;
  },
): ContainerImage {
  const directory = mkdtempSync(join(tmpdir(), 'outrider-image-'));
  try {
    const main = join(directory, 'main.mjs');
    if (Stack.of(scope).bundlingRequired) {
      bundle(`${name}/main`, main);
      bundleProcesses(processes, directory);
      if (native) installNativeModules(directory);
    } else writeFileSync(main, '// Bundling was skipped.\n');
    writeFileSync(
      join(directory, 'Dockerfile'),
      baseImage === undefined ? dockerfile : dockerfileOn(baseImage),
    );
    // Copies the directory into the assembly at once.
    const asset = new DockerImageAsset(scope, id, { directory, platform: Platform.LINUX_ARM64 });
    return ContainerImage.fromDockerImageAsset(asset);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
