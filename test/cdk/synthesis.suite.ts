import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addSystem } from '../../cdk/system.ts';
import { cdkContext } from './synthesized.ts';

let outdir: string;

beforeEach(() => {
  outdir = mkdtempSync(join(tmpdir(), 'outrider-synth-'));
});

afterEach(() => {
  rmSync(outdir, { recursive: true, force: true });
});

const newApp = (): App => new App({ outdir, context: cdkContext });

describe('synthesis', () => {
  it('ends without findings', () => {
    const app = newApp();
    addSystem(app);
    expect(app.synth().stacks.map(({ stackName }) => stackName)).toEqual([
      'OutriderStorage',
      'OutriderCompute',
      'OutriderCoordinator',
      'OutriderApi',
    ]);
  });

  it('writes an image that builds for arm64 on any machine: nothing runs while it is built', () => {
    const app = newApp();
    addSystem(app);
    app.synth();
    const [dockerfile = '', ...others] = globSync(join(outdir, 'asset.*', 'Dockerfile'));
    expect(others).toEqual([]);
    const instructions = readFileSync(dockerfile, 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[0]);
    expect(instructions).toEqual(['FROM', 'WORKDIR', 'COPY', 'USER', 'ENV', 'CMD', '']);
  });

  it('fails on a grant that nobody has accepted', () => {
    const app = newApp();
    const { coordinator } = addSystem(app);
    const tooMuch = new PolicyStatement({ actions: ['dynamodb:GetItem'], resources: ['*'] });
    coordinator.steps.plan.addToRolePolicy(tooMuch);
    expect(() => app.synth()).toThrow(/AwsSolutions-IAM5\[Resource::\*\]/);
  });
});
