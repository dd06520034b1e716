import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import { Architecture, Code, LayerVersion, Runtime } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import * as z from 'zod';
import { ConfigError } from '../context.ts';

const manifest = z
  .object({ dependencies: z.object({ '@duckdb/node-api': z.string() }) })
  .parse(JSON.parse(readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8')));
const version = manifest.dependencies['@duckdb/node-api'];
const duckdb = `@duckdb/node-api@${version}`;
const binaries = '@duckdb/node-bindings-linux-arm64';

/**
 * DuckDB as workers need it, Linux on arm64, into `<directory>/node_modules`: whoever deploys may work on another machine,
 * for which npm has installed other binaries. They are files of npm packages; nothing is compiled and no script is run.
 *
 * @throws ConfigError where npm cannot fetch them.
 */
export function installNativeModules(directory: string): void {
  const place = mkdtempSync(join(tmpdir(), 'outrider-native-'));
  try {
    writeFileSync(join(place, 'package.json'), '{ "private": true }');
    const flags = [
      '--os=linux',
      '--cpu=arm64',
      '--libc=glibc',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
    ];
    execFileSync('npm', ['install', ...flags, '--no-package-lock', duckdb], { cwd: place, stdio: 'pipe' });
    // Binaries for another machine than this one are optional to npm, which leaves them out without a word.
    if (!existsSync(join(place, 'node_modules', binaries))) throw new Error(`${binaries} is not to be had`);
    mkdirSync(directory, { recursive: true });
    cpSync(join(place, 'node_modules', '@duckdb'), join(directory, 'node_modules', '@duckdb'), {
      recursive: true,
    });
  } catch (cause) {
    const said = cause instanceof Error ? cause.message.split('\n').slice(0, 5).join('\n') : String(cause);
    throw new ConfigError(
      `context "duckdb": npm must fetch ${duckdb} for Linux on arm64, which failed; deploy without it by duckdb=false\n${said}`,
    );
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** A layer with the native modules of workers, where Lambda's Node looks for them: 70 MB of the 250 that a function may have. */
export function nativeLayer(scope: Construct): LayerVersion {
  return new LayerVersion(scope, 'NativeModules', {
    description: `Outrider: ${duckdb} for workers`,
    compatibleArchitectures: [Architecture.ARM_64],
    // On Python's runtime they are for the Node beside it.
    compatibleRuntimes: [Runtime.NODEJS_24_X, Runtime.PYTHON_3_14],
    code: Code.fromAsset(fileURLToPath(new URL('.', import.meta.url)), {
      // By what is asked for: the same version is fetched once for an assembly.
      assetHashType: AssetHashType.CUSTOM,
      assetHash: createHash('sha256').update(`${duckdb} linux arm64`).digest('hex'),
      bundling: {
        // Never used: bundling succeeds locally or throws.
        image: DockerImage.fromRegistry('unused'),
        local: {
          tryBundle: (outputDir) => {
            installNativeModules(join(outputDir, 'nodejs'));
            return true;
          },
        },
      },
    }),
  });
}
