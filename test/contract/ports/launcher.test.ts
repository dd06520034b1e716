import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ECSClient } from '@aws-sdk/client-ecs';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LambdaEcsLauncher } from '../../../src/adapters/aws/lambda-ecs-launcher.ts';
import type { WorkerSize } from '../../../src/contracts/job-spec.ts';
import { type EcsServer, startEcsServer } from '../../../src/local/ecs/server.ts';
import { type LambdaServer, startLambdaServer } from '../../../src/local/lambda/server.ts';
import type { LaunchRequest } from '../../../src/ports/launcher.ts';
import { attempt, freshJobId } from './builders.ts';
import { credentials, region } from './servers.ts';

const jobId = freshJobId();
const request = (kind: 'lambda' | 'fargate', index: number, size: WorkerSize = 'medium'): LaunchRequest => ({
  kind,
  size,
  payload: {
    jobId,
    attemptId: attempt(index),
    shards: 4,
    stageKey: 'jobs/x/stages/map.json',
    inputs: [{ key: 'jobs/x/inputs/map/0.ndjson', start: 0, end: 100 }],
    heartbeatMs: 1_000,
  },
});

describe('the launcher over the local Lambda and ECS', () => {
  const lines: string[] = [];
  const watchers = new Set<() => void>();
  const note = (line: string): void => {
    lines.push(line);
    for (const check of watchers) check();
  };
  const until = (holds: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => {
        if (!holds()) return;
        watchers.delete(check);
        resolve();
      };
      watchers.add(check);
      check();
    });
  let root: string;
  let lambda: LambdaServer;
  let ecs: EcsServer;
  let launcher: LambdaEcsLauncher;

  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'outrider-launch-')));
    await mkdir(join(root, 'code'));
    await writeFile(
      join(root, 'code/index.js'),
      `exports.handler = async (event) => { console.log('got ' + JSON.stringify(event)); };`,
    );
    await writeFile(
      join(root, 'main.mjs'),
      `console.log('got ' + process.env.OUTRIDER_ATTEMPT); setInterval(() => {}, 60000);`,
    );
    lambda = await startLambdaServer({
      credentials,
      region,
      maxConcurrency: 2,
      logDir: join(root, 'lambda'),
      nodePath: process.execPath,
      extraEnvironment: {},
      functions: [
        {
          name: 'worker-medium',
          codeDir: join(root, 'code'),
          handler: 'index.handler',
          timeoutMs: 20_000,
          memoryMb: 256,
          environment: {},
          asyncRetries: 0,
          maxEventAgeMs: 60_000,
        },
      ],
      onLog: ({ line }) => {
        note(line);
      },
    });
    ecs = await startEcsServer({
      credentials,
      region,
      clusters: ['main'],
      maxTasks: 2,
      logDir: join(root, 'ecs'),
      nodePath: process.execPath,
      extraEnvironment: {},
      taskDefinitions: [
        {
          family: 'worker',
          arn: `arn:aws:ecs:${region}:000000000000:task-definition/worker:1`,
          containerName: 'worker',
          command: ['node', join(root, 'main.mjs')],
          cwd: root,
          environment: {},
          memoryMb: 2_048,
        },
      ],
      onLog: ({ line }) => {
        note(line);
      },
      onTaskChange: () => {
        note('a task changed');
      },
    });
    launcher = new LambdaEcsLauncher(
      {
        lambda: new LambdaClient({ endpoint: lambda.endpoint, region, credentials, maxAttempts: 1 }),
        ecs: new ECSClient({ endpoint: ecs.endpoint, region, credentials, maxAttempts: 1 }),
      },
      {
        workerFunctions: { medium: 'worker-medium', large: 'worker-large' },
        cluster: 'main',
        taskDefinition: 'worker',
        taskContainer: 'worker',
        subnets: [{ id: 'subnet-a' }],
        securityGroups: ['sg-a'],
      },
    );
  });
  afterAll(async () => {
    await Promise.all([lambda.close(), ecs.close()]);
    await rm(root, { recursive: true, force: true });
  });

  const got = (index: number): string => `got ${JSON.stringify(request('lambda', index).payload)}`;
  const has = (text: string): boolean => lines.some((line) => line.includes(text));

  it('hands each Lambda attempt its payload', async () => {
    const outcomes = await launcher.launch([request('lambda', 1), request('lambda', 2)]);
    expect(outcomes).toEqual([
      { attemptId: 'map/1/0', outcome: 'accepted' },
      { attemptId: 'map/2/0', outcome: 'accepted' },
    ]);
    await until(() => has(got(1)) && has(got(2)));
  });

  it('refuses a size that has no function, and a function that is not there', async () => {
    const outcomes = await launcher.launch([request('lambda', 3, 'small'), request('lambda', 4, 'large')]);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['refused', 'refused']);
    expect(outcomes.map(({ message }) => message)).toEqual([
      'no worker function of size small',
      expect.stringContaining('ResourceNotFoundException'),
    ]);
  });

  it('hands each Fargate attempt its payload, starts it once, is throttled when full, and stops it', async () => {
    const first = [request('fargate', 5), request('lambda', 6), request('fargate', 7)];
    expect((await launcher.launch(first)).map(({ attemptId, outcome }) => [attemptId, outcome])).toEqual([
      ['map/5/0', 'accepted'],
      ['map/6/0', 'accepted'],
      ['map/7/0', 'accepted'],
    ]);
    // Each task is told of both, and takes one.
    const { attemptId, inputs } = request('fargate', 7).payload;
    const both = { ...request('fargate', 5).payload, batch: [{ attemptId, inputs }] };
    const starts = (): number => lines.filter((line) => line === `got ${JSON.stringify(both)}`).length;
    await until(() => starts() === 2);
    // A scheduler that takes the job over may know of more copies by now.
    const { payload, ...rest } = request('fargate', 5);
    const again = { ...rest, payload: { ...payload, copies: { map: { 3: 1 } } } };
    for (const repeated of [request('fargate', 5), again])
      expect(await launcher.launch([repeated, request('fargate', 7)])).toEqual([
        { attemptId: 'map/5/0', outcome: 'accepted' },
        { attemptId: 'map/7/0', outcome: 'accepted' },
      ]);
    expect(ecs.tasks()).toHaveLength(2);
    expect(await launcher.launch([request('fargate', 8)])).toMatchObject([
      { attemptId: 'map/8/0', outcome: 'throttled' },
    ]);
    for (const { taskArn } of ecs.tasks()) await launcher.stop({ kind: 'fargate', node: taskArn });
    await until(() => ecs.tasks().every(({ lastStatus }) => lastStatus === 'STOPPED'));
    // There is room now, which ECS would not say to a repetition of the call that found none.
    expect(await launcher.launch([request('fargate', 8)])).toEqual([
      { attemptId: 'map/8/0', outcome: 'accepted' },
    ]);
    for (const { taskArn } of ecs.tasks()) await launcher.stop({ kind: 'fargate', node: taskArn });
    await until(() => ecs.tasks().every(({ lastStatus }) => lastStatus === 'STOPPED'));
  });

  it('hands a Fargate attempt what ECS takes of its payload, and Lambda all', async () => {
    const copies = { map: Object.fromEntries(Array.from({ length: 1_000 }, (_, task) => [String(task), 1])) };
    const naming = (kind: 'lambda' | 'fargate', index: number): LaunchRequest => {
      const one = request(kind, index);
      return { ...one, payload: { ...one.payload, copies } };
    };
    const outcomes = await launcher.launch([naming('fargate', 9), naming('lambda', 10)]);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['accepted', 'accepted']);
    await until(() => has(got(9)) && has(`got ${JSON.stringify(naming('lambda', 10).payload)}`));
    for (const { taskArn } of ecs.tasks()) await launcher.stop({ kind: 'fargate', node: taskArn });
    await until(() => ecs.tasks().every(({ lastStatus }) => lastStatus === 'STOPPED'));
  });

  it('says nothing when there is nothing to stop', async () => {
    await launcher.stop({ kind: 'lambda', node: 'stream' });
    await launcher.stop({ kind: 'fargate' });
    await launcher.stop({
      kind: 'fargate',
      node: `arn:aws:ecs:${region}:000000000000:task/main/${'0'.repeat(32)}`,
    });
  });

  it('answers nothing for no requests', async () => {
    expect(await launcher.launch([])).toEqual([]);
  });
});
