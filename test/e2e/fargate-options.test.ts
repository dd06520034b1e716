import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DescribeTasksCommand, ECSClient, StopTaskCommand } from '@aws-sdk/client-ecs';
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
async function submit(
  { system, input }: Deployment,
  kind: 'lambda' | 'fargate',
  command: readonly string[] = ['cat'],
) {
  const place = await Workplace.make();
  const stage = { name: 'only', operator: 'exec', options: { command }, worker: { kind } };
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

  const ecsOf = ({ stack: { region, credentials, environment } }: EmbeddedSystem): ECSClient =>
    new ECSClient({ region, credentials, endpoint: environment['AWS_ENDPOINT_URL_ECS'] ?? '' });

  /** What the tasks of a job ran on, in the order of their attempts. */
  async function providersOf(jobId: string): Promise<unknown[]> {
    const { attempts } = await deployment.system.api.attempts(jobId);
    const tasks = attempts.map(({ node = '' }) => node);
    const cluster = tasks[0]?.split('/')[1];
    const described = await ecsOf(deployment.system).send(new DescribeTasksCommand({ cluster, tasks }));
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

  it('loses its place there with an attempt that says so, and does the task again on demand at once', async () => {
    const { system } = deployment;
    const before = new Set((await system.api.list({ limit: 10 })).jobs.map(({ jobId }) => jobId));
    // The first attempt waits to be interrupted; the next finds that there was one.
    const script = 'if mkdir "$0" 2>/dev/null; then sleep 600; fi; cat';
    const submitted = submit(deployment, 'fargate', ['sh', '-c', script, join(system.dir, 'first')]);
    const node = await system.until('an attempt at work', async () => {
      const job = (await system.api.list({ limit: 10 })).jobs.find(({ jobId }) => !before.has(jobId));
      if (job === undefined || !existsSync(join(system.dir, 'first'))) return undefined;
      return (await system.api.attempts(job.jobId)).attempts[0]?.node;
    });
    // What Spot does with its notice, SIGTERM, ECS does for whoever asks.
    await ecsOf(system).send(new StopTaskCommand({ cluster: node.split('/')[1], task: node }));
    const { exitCode, out } = await submitted;
    const job = JSON.parse(out) as { jobId: string };
    expect([exitCode, job]).toMatchObject([0, { state: 'succeeded', attempts: { launched: 2 } }]);
    const { attempts } = await system.api.attempts(job.jobId);
    expect(attempts.map(({ failure, state }) => failure?.cause ?? state)).toEqual(['interrupted', 'done']);
    expect(attempts[0]?.failure?.message).toMatch(/Spot/);
    // On demand by its launch type, for which the cluster needs no provider.
    expect(await providersOf(job.jobId)).toEqual(['FARGATE_SPOT', undefined]);
    expect((await system.output(await system.api.job(job.jobId))).toString()).toBe(lines);
    const place = await Workplace.make();
    const told = (await place.run('explain', job.jobId, '--state-dir', system.dir)).out;
    expect(told).toMatch(/only\/0\/0: interrupted, .*Spot/);
    expect(told).not.toMatch(/slow node/);
  });
});
