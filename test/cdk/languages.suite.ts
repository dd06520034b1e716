import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addSystem } from '../../cdk/system.ts';
import { cdkContext, synthesized } from './synthesized.ts';

const image = 'public.ecr.aws/docker/library/python:3.13-slim';
let outdir: string;
let compute: Template;

/** Directories of the assembly that hold a file of this name. */
const assetsWith = (...name: readonly string[]): string[] =>
  readdirSync(outdir)
    .filter((entry) => entry.startsWith('asset.'))
    .map((entry) => join(outdir, entry))
    .filter((directory) => existsSync(join(directory, ...name)));

beforeAll(() => {
  outdir = mkdtempSync(join(tmpdir(), 'outrider-synth-'));
  const app = new App({
    outdir,
    context: { ...cdkContext, 'aws:cdk:bundling-stacks': ['**'], python: 'true', fargateImage: image },
  });
  addSystem(app);
  const assembly = app.synth();
  compute = Template.fromJSON(assembly.getStackByName('OutriderCompute').template as Record<string, unknown>);
});
afterAll(() => {
  rmSync(outdir, { recursive: true, force: true });
});

const workers = (): Readonly<Record<string, unknown>>[] =>
  Object.values(
    compute.findResources('AWS::Lambda::Function', {
      Properties: { Description: Match.stringLikeRegexp('runs one attempt') },
    }),
  ).map((resource) => (resource as { Properties: Record<string, unknown> }).Properties);

describe('a deployment with Python', () => {
  it('runs all sizes of worker on the managed Python runtime, started by the wrapper of the layer', () => {
    expect(workers()).toHaveLength(4);
    for (const properties of workers())
      expect(properties).toMatchObject({
        Runtime: 'python3.14',
        Environment: { Variables: { AWS_LAMBDA_EXEC_WRAPPER: '/opt/outrider-start' } },
        Layers: [{ Ref: expect.stringMatching(/^NodeLayer/) as unknown }],
      });
  });

  it('leaves the other functions and other deployments on Node', () => {
    const plain = synthesized();
    const all = plain.resources('AWS::Lambda::Function').map(({ properties }) => properties['Runtime']);
    expect(new Set(all)).toEqual(new Set(['nodejs24.x']));
    expect(plain.resources('AWS::Lambda::LayerVersion')).toEqual([]);
    compute.hasResourceProperties('AWS::Lambda::Function', { Runtime: 'nodejs24.x' });
  });

  it('has in the layer Node for the architecture of the functions, and the wrapper, within 250 MB', () => {
    const [layer] = assetsWith('outrider-start');
    if (layer === undefined) throw new Error('no layer');
    // Where layers lay modules, that of DuckDB among them: only Lambda's own Node runtime says so itself.
    expect(readFileSync(join(layer, 'outrider-start'), 'utf8')).toContain(
      'export NODE_PATH="${NODE_PATH:-/opt/nodejs/node_modules}"\n',
    );
    const node = readFileSync(join(layer, 'bin', 'node'));
    // e_machine of the ELF header: 62 is x86-64, 183 is AArch64.
    const architecture = new Map([
      [62, 'x86_64'],
      [183, 'arm64'],
    ]).get(node.readUInt16LE(18));
    expect(new Set(workers().map((properties) => JSON.stringify(properties['Architectures'])))).toEqual(
      new Set([JSON.stringify([architecture])]),
    );
    for (const path of ['outrider-start', join('bin', 'node')])
      expect(statSync(join(layer, path)).mode & 0o111).toBe(0o111);
    expect(node.length).toBeLessThan(240 * 1024 * 1024);
  });

  it('starts the worker by the wrapper in place of the interpreter that Lambda names', () => {
    const [layer] = assetsWith('outrider-start');
    const [code] = assetsWith('runtime.mjs');
    if (layer === undefined || code === undefined) throw new Error('no assets');
    // The same script, with the layer in another place than /opt.
    const moved = join(outdir, 'start-here');
    writeFileSync(
      moved,
      readFileSync(join(layer, 'outrider-start'), 'utf8').replaceAll('/opt/', `${layer}/`),
    );
    chmodSync(moved, 0o755);
    const run = spawnSync(moved, ['/var/lang/bin/python3.14', '/var/runtime/bootstrap.py'], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], LAMBDA_TASK_ROOT: code },
    });
    // It is the worker that speaks: nothing but the Runtime API is missing here.
    expect(run.stderr).toContain('AWS_LAMBDA_RUNTIME_API is not set');
  });
});

describe("an image of the user's own on Fargate", () => {
  it('gets Node and the worker beside what is in it', () => {
    const [context] = assetsWith('Dockerfile');
    const dockerfile = readFileSync(join(context ?? '', 'Dockerfile'), 'utf8');
    expect(dockerfile).toContain(`\nFROM ${image}\n`);
    expect(dockerfile).toContain('COPY --from=node /usr/local/bin/node /opt/outrider/node\n');
    expect(dockerfile).toContain('CMD ["/opt/outrider/node", "main.mjs"]\n');
  });

  it.each(['two words', 'python:3.13\nRUN rm -rf /', ''])(
    'is refused where %j is no name of one',
    (fargateImage) => {
      const app = new App({ context: { ...cdkContext, fargateImage } });
      expect(() => addSystem(app)).toThrow(/context "fargateImage".*must be the name of an image/);
    },
  );
});
