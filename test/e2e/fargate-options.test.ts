import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DescribeTasksCommand, ECSClient } from '@aws-sdk/client-ecs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeConnection } from '../../src/cli/connection.ts';
import type { FaultHook } from '../../src/local/http/fault-hook.ts';
import { synthesizeWith } from '../support/assemblies.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { Workplace } from './command.ts';

/** Synthesis takes its time on a busy machine. */
const startMs = 400_000;
const lines = 'one\ntwo\nthree\n';

interface Deployment {
  readonly system: EmbeddedSystem;
  readonly assemblyDir: string;
  readonly input: string;
  stop(): Promise<void>;
}

/** The system as it is deployed with such a context, on this machine. */
async function deployed(
  context: Readonly<Record<string, unknown>>,
  onRequest?: FaultHook,
): Promise<Deployment> {
  const assemblyDir = await synthesizeWith(context);
  const options = onRequest === undefined ? {} : { onRequest };
  const system = await EmbeddedSystem.start({ assemblyDir, slots: 2, ...options });
  await writeConnection(system.dir, system.stack);
  const input = await system.put('lines', Buffer.from(lines));
  const stop = async (): Promise<void> => {
    await system.stop();
    await rm(assemblyDir, { recursive: true, force: true });
  };
  return { system, assemblyDir, input, stop };
}

/** Submits a job of one stage with the command, and waits for it. */
async function submit({ system, input }: Deployment, kind: 'lambda' | 'fargate') {
  const place = await Workplace.make();
  const stage = { name: 'only', operator: 'exec', options: { command: ['cat'] }, worker: { kind } };
  const spec = { name: `on-${kind}`, stages: [{ ...stage, inputs: [{ s3: [input] }] }] };
  await writeFile(place.path('job.json'), JSON.stringify(spec));
  return place.run('submit', 'job.json', '--wait', '--json', '--state-dir', system.dir);
}

describe('a deployment without Fargate', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deployed({ fargate: 'off' });
  }, startMs);
  afterAll(() => deployment.stop());

  it('holds nothing that needs Docker', async () => {
    const names = (await readdir(deployment.assemblyDir)).filter((name) => name.endsWith('.assets.json'));
    expect(names).toHaveLength(4);
    for (const name of names) {
      const text = await readFile(join(deployment.assemblyDir, name), 'utf8');
      expect((JSON.parse(text) as { dockerImages?: object }).dockerImages ?? {}).toEqual({});
    }
  });

  it('runs jobs on Lambda', async () => {
    const { exitCode, out } = await submit(deployment, 'lambda');
    expect([exitCode, JSON.parse(out)]).toMatchObject([0, { state: 'succeeded' }]);
  });

  it('refuses one that asks for Fargate when it is submitted, by the field, and starts nothing', async () => {
    const { exitCode, err } = await submit(deployment, 'fargate');
    expect(exitCode).toBe(2);
    expect(err).toMatch(/^outrider: .*stages\[0\]\.worker\.kind.*Fargate.*\n$/);
    expect((await deployment.system.api.list({ limit: 10 })).jobs.map(({ name }) => name)).toEqual([
      'on-lambda',
    ]);
  });
});

describe('a deployment whose Fargate is on Spot', () => {
  let deployment: Deployment;
  let refusals = 1;
  let asked = 0;
  beforeAll(async () => {
    deployment = await deployed({ fargate: 'spot' }, ({ service, operation }) => {
      if (service !== 'ecs' || operation !== 'RunTask') return undefined;
      asked += 1;
      return refusals-- > 0 ? { error: { status: 400, code: 'ThrottlingException' } } : undefined;
    });
  }, startMs);
  afterAll(() => deployment.stop());

  /** What the tasks of a job ran on, in the order of their attempts. */
  async function providersOf(jobId: string): Promise<unknown[]> {
    const { stack, api } = deployment.system;
    const { region, credentials, environment } = stack;
    const endpoint = environment['AWS_ENDPOINT_URL_ECS'] ?? '';
    const ecs = new ECSClient({ region, credentials, endpoint });
    const { attempts } = await api.attempts(jobId);
    const tasks = attempts.map(({ node = '' }) => node);
    const cluster = tasks[0]?.split('/')[1];
    const described = await ecs.send(new DescribeTasksCommand({ cluster, tasks }));
    return (described.tasks ?? []).map(({ capacityProviderName }) => capacityProviderName);
  }

  it('runs first attempts there, and waits for its turn where it is asked too fast', async () => {
    const { exitCode, out, err } = await submit(deployment, 'fargate');
    expect(out, err).not.toBe('');
    const job = JSON.parse(out) as { jobId: string };
    expect([exitCode, job]).toMatchObject([0, { state: 'succeeded', attempts: { launched: 1, lost: 0 } }]);
    expect(asked).toBeGreaterThanOrEqual(2);
    expect(await providersOf(job.jobId)).toEqual(['FARGATE_SPOT']);
  });
});
