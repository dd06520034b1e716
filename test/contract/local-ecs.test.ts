import { mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  DescribeTasksCommand,
  ECSClient,
  ListTasksCommand,
  RegisterTaskDefinitionCommand,
  RunTaskCommand,
  StopTaskCommand,
} from '@aws-sdk/client-ecs';
import type { RunTaskCommandInput, Task } from '@aws-sdk/client-ecs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { startEcsServer } from '../../src/local/ecs/server.ts';
import type { EcsServer, EcsServerOptions, LocalTaskDefinition } from '../../src/local/ecs/server.ts';

const CREDENTIALS = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'local-secret' };
const REGION = 'eu-central-1';
const CLUSTER_ARN = 'arn:aws:ecs:eu-central-1:000000000000:cluster/main';

/** Waits for ever; says so first, since a signal before that would find no listener. */
const WAITS = `console.log('waits'); setInterval(() => {}, 60000);`;

const anyDate: unknown = expect.any(Date);
const textWith = (part: string): unknown => expect.stringContaining(part);

let root: string;
let server: EcsServer | undefined;
let client: ECSClient;
let lines: string[];
let watchers: { wanted: () => boolean; resolve: () => void }[];

function notify(): void {
  watchers = watchers.filter(({ wanted, resolve }) => {
    if (!wanted()) return true;
    resolve();
    return false;
  });
}

/** Resolves once the tasks' log or their states make `wanted` true. */
function until(wanted: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    watchers.push({ wanted, resolve });
    notify();
  });
}

const logged = (text: string, times = 1) =>
  until(() => lines.filter((line) => line.includes(text)).length >= times);
const stopped = (count: number) =>
  until(() => server?.tasks().filter(({ lastStatus }) => lastStatus === 'STOPPED').length === count);

function definition(source: string, settings: Partial<LocalTaskDefinition> = {}): LocalTaskDefinition {
  writeFileSync(join(root, 'main.mjs'), source);
  return {
    family: 'worker',
    arn: 'arn:aws:ecs:eu-central-1:000000000000:task-definition/worker:3',
    containerName: 'main',
    command: ['node', join(root, 'main.mjs')],
    cwd: root,
    environment: { MINE: '1' },
    memoryMb: 256,
    ...settings,
  };
}

async function start(
  taskDefinitions: LocalTaskDefinition[],
  settings: Partial<EcsServerOptions> = {},
): Promise<void> {
  server = await startEcsServer({
    credentials: CREDENTIALS,
    region: REGION,
    clusters: ['main', 'other'],
    taskDefinitions,
    maxTasks: 4,
    logDir: join(root, 'logs'),
    nodePath: process.execPath,
    extraEnvironment: { STACK_ENDPOINT: 'http://stack' },
    onLog: ({ line }) => {
      lines.push(line);
      notify();
    },
    onTaskChange: notify,
    ...settings,
  });
  client = new ECSClient({
    endpoint: server.endpoint,
    region: REGION,
    credentials: CREDENTIALS,
    maxAttempts: 1,
  });
}

function run(input: Partial<RunTaskCommandInput> = {}) {
  return client.send(
    new RunTaskCommand({
      cluster: 'main',
      taskDefinition: 'worker',
      launchType: 'FARGATE',
      networkConfiguration: { awsvpcConfiguration: { subnets: ['subnet-a', 'subnet-b'] } },
      ...input,
    }),
  );
}

async function describeOne(taskArn: string | undefined): Promise<Task | undefined> {
  const output = await client.send(new DescribeTasksCommand({ cluster: 'main', tasks: [taskArn ?? ''] }));
  return output.tasks?.[0];
}

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'local-ecs-')));
  lines = [];
  watchers = [];
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(root, { recursive: true, force: true });
});

describe('a task', () => {
  it('goes from PROVISIONING to RUNNING to STOPPED, with its exit code', async () => {
    await start([definition('process.stdin.resume(); setTimeout(() => process.exit(7), 20);')]);
    const output = await run({ startedBy: 'me' });
    expect(output.failures).toEqual([]);
    expect(output.tasks).toMatchObject([
      {
        lastStatus: 'PROVISIONING',
        desiredStatus: 'RUNNING',
        clusterArn: CLUSTER_ARN,
        taskDefinitionArn: 'arn:aws:ecs:eu-central-1:000000000000:task-definition/worker:3',
        startedBy: 'me',
      },
    ]);
    const arn = output.tasks?.[0]?.taskArn;
    expect(arn).toMatch(/^arn:aws:ecs:eu-central-1:000000000000:task\/main\/[0-9a-f]{32}$/);
    expect((await describeOne(arn))?.lastStatus).toBe('RUNNING');
    await stopped(1);
    expect(await describeOne(arn)).toMatchObject({
      lastStatus: 'STOPPED',
      desiredStatus: 'STOPPED',
      stopCode: 'EssentialContainerExited',
      stoppedReason: 'Essential container in task exited',
      startedAt: anyDate,
      stoppedAt: anyDate,
      containers: [{ name: 'main', lastStatus: 'STOPPED', exitCode: 7 }],
    });
  });

  it('gets its own, the overriding and the reserved variables, and its metadata', async () => {
    const source = `
      const answer = await fetch(process.env.ECS_CONTAINER_METADATA_URI_V4 + '/task');
      console.log(JSON.stringify({ env: process.env, task: await answer.json(), args: process.argv.slice(2) }));`;
    process.env['LEAKED_FROM_CALLER'] = 'yes';
    await start([definition(source)], { zoneOf: ({ subnetId }) => `zone-of-${subnetId}` });
    const output = await run({
      overrides: {
        containerOverrides: [
          {
            name: 'main',
            command: ['node', join(root, 'main.mjs'), 'now'],
            environment: [{ name: 'ATTEMPT', value: 'a/1' }],
          },
        ],
      },
    });
    await stopped(1);
    delete process.env['LEAKED_FROM_CALLER'];
    const said: unknown = JSON.parse(lines[0] ?? '');
    expect(said).toMatchObject({
      env: { MINE: '1', ATTEMPT: 'a/1', STACK_ENDPOINT: 'http://stack', AWS_REGION: REGION },
      task: {
        TaskARN: output.tasks?.[0]?.taskArn,
        Cluster: CLUSTER_ARN,
        Family: 'worker',
        Revision: '3',
        AvailabilityZone: 'zone-of-subnet-a',
      },
      args: ['now'],
    });
    expect(said).not.toHaveProperty('env.LEAKED_FROM_CALLER');
  });

  it('has its zone by its subnet, which take turns', async () => {
    await start([definition(WAITS)], {
      zoneOf: ({ subnetId }) => subnetId.replace('subnet-', 'eu-central-1'),
    });
    const output = await run({ count: 3 });
    expect(output.tasks?.map((task) => task.availabilityZone)).toEqual([
      'eu-central-1a',
      'eu-central-1b',
      'eu-central-1a',
    ]);
  });

  it('keeps its output in a file', async () => {
    await start([definition('console.log("one"); console.error("two");')]);
    const id = (await run()).tasks?.[0]?.taskArn?.split('/').at(-1) ?? '';
    await stopped(1);
    await server?.close();
    const log = readFileSync(join(root, 'logs', 'worker', `${id}.log`), 'utf8');
    expect(log.split('\n').sort()).toEqual(['', 'one', 'two']);
  });

  it('stops with a reason if its program cannot start', async () => {
    await start([definition('', { command: ['/no/such/program'] })]);
    const arn = (await run()).tasks?.[0]?.taskArn;
    await stopped(1);
    expect(await describeOne(arn)).toMatchObject({
      stopCode: 'TaskFailedToStart',
      stoppedReason: textWith('CannotStartContainerError'),
    });
  });

  it('ends with 137 if it takes too much memory or is killed, and with 134 if its own heap is full', async () => {
    const source = 'const all = []; for (;;) all.push(new Array(1e5).fill(1.5));';
    const arn = 'arn:aws:ecs:eu-central-1:000000000000:task-definition/idle:1';
    await start([definition(source, { family: 'idle', arn, command: ['sleep', '600'] }), definition(source)]);
    const full = [
      { name: 'main', environment: [{ name: 'NODE_OPTIONS', value: '--max-old-space-size=64' }] },
    ];
    const tasks = [
      await run(),
      await run({ taskDefinition: 'idle:1' }),
      await run({ overrides: { containerOverrides: full } }),
    ].map((output) => output.tasks?.[0]?.taskArn);
    process.kill(server?.tasks().find(({ family }) => family === 'idle')?.pid ?? 0, 'SIGKILL');
    await stopped(3);
    const ended = await Promise.all(tasks.map(async (task) => (await describeOne(task))?.containers?.[0]));
    expect(ended.map((each) => each?.exitCode)).toEqual([137, 137, 134]);
    expect(ended.map((each) => each?.reason)).toEqual([textWith('OutOfMemoryError'), undefined, undefined]);
  });
});

describe('StopTask', () => {
  it('lets the program end by SIGTERM', async () => {
    await start([
      definition(`process.on('SIGTERM', () => { console.log('tidy'); process.exit(0); }); ${WAITS}`),
    ]);
    const arn = (await run()).tasks?.[0]?.taskArn;
    await logged('waits');
    const output = await client.send(
      new StopTaskCommand({ cluster: 'main', task: arn ?? '', reason: 'lost the race' }),
    );
    expect(output.task).toMatchObject({ desiredStatus: 'STOPPED', lastStatus: 'RUNNING' });
    await stopped(1);
    expect(lines).toContain('tidy');
    expect(await describeOne(arn)).toMatchObject({
      stopCode: 'UserInitiated',
      stoppedReason: 'lost the race',
      containers: [{ exitCode: 0 }],
    });
  });

  it('kills what does not end by itself', async () => {
    await start([definition(`process.on('SIGTERM', () => {}); ${WAITS}`)], { stopTimeoutMs: 50 });
    const arn = (await run()).tasks?.[0]?.taskArn;
    await logged('waits');
    await client.send(new StopTaskCommand({ cluster: 'main', task: arn ?? '' }));
    await stopped(1);
    expect((await describeOne(arn))?.containers?.[0]?.exitCode).toBe(137);
  });

  it('refuses a task that it does not know, also one of another cluster', async () => {
    await start([definition(WAITS)]);
    const id = (await run()).tasks?.[0]?.taskArn?.split('/').at(-1) ?? '';
    const refusal = { name: 'InvalidParameterException', message: 'The referenced task was not found.' };
    await expect(client.send(new StopTaskCommand({ cluster: 'other', task: id }))).rejects.toMatchObject(
      refusal,
    );
    await expect(client.send(new StopTaskCommand({ cluster: 'main', task: 'none' }))).rejects.toMatchObject(
      refusal,
    );
    expect((await client.send(new StopTaskCommand({ cluster: 'main', task: id }))).task?.taskArn).toContain(
      id,
    );
  });
});

describe('RunTask', () => {
  it('starts what there is room for, and names the rest as failures', async () => {
    await start([definition(WAITS)], { maxTasks: 2 });
    const output = await run({ count: 5 });
    expect(output.tasks).toHaveLength(2);
    expect(output.failures?.map(({ reason }) => reason)).toEqual([
      'RESOURCE:CPU',
      'RESOURCE:CPU',
      'RESOURCE:CPU',
    ]);
    expect((await run()).tasks).toEqual([]);
  });

  it('starts nothing more for a client token that it has seen', async () => {
    await start([definition(WAITS)]);
    const first = await run({ clientToken: 'same', count: 2 });
    const second = await run({ clientToken: 'same', count: 2 });
    expect(second.tasks?.map(({ taskArn }) => taskArn)).toEqual(first.tasks?.map(({ taskArn }) => taskArn));
    expect(server?.tasks()).toHaveLength(2);
    await expect(run({ clientToken: 'same', count: 1 })).rejects.toMatchObject({ name: 'ConflictException' });
  });

  it.each([
    ['an unknown cluster', { cluster: 'absent' }, 'ClusterNotFoundException'],
    ['an unknown definition', { taskDefinition: 'worker:9' }, 'ClientException'],
    ['more than ten tasks', { count: 11 }, 'InvalidParameterException'],
    ['no subnet', { networkConfiguration: undefined }, 'InvalidParameterException'],
    [
      'an unknown container',
      { overrides: { containerOverrides: [{ name: 'sidecar' }] } },
      'InvalidParameterException',
    ],
    [
      'overrides over 8,192 characters',
      {
        overrides: {
          containerOverrides: [{ name: 'main', environment: [{ name: 'A', value: 'x'.repeat(8192) }] }],
        },
      },
      'InvalidParameterException',
    ],
  ])('refuses %s', async (_what, input, name) => {
    await start([definition(WAITS)]);
    await expect(run(input)).rejects.toMatchObject({ name, $metadata: { httpStatusCode: 400 } });
    expect(server?.tasks()).toEqual([]);
  });
});

describe('the other operations', () => {
  it('list by status, family and starter, in pages', async () => {
    await start([definition(WAITS)]);
    const arns = (await run({ count: 3, startedBy: 'me' })).tasks?.map(({ taskArn }) => taskArn) ?? [];
    await run({ startedBy: 'you' });
    const first = await client.send(
      new ListTasksCommand({ cluster: CLUSTER_ARN, startedBy: 'me', maxResults: 2 }),
    );
    expect(first.taskArns).toEqual(arns.slice(0, 2));
    const rest = await client.send(
      new ListTasksCommand({ cluster: 'main', startedBy: 'me', maxResults: 2, nextToken: first.nextToken }),
    );
    expect(rest.taskArns).toEqual(arns.slice(2));
    expect(rest.nextToken).toBeUndefined();
    await client.send(new StopTaskCommand({ cluster: 'main', task: arns[0] ?? '' }));
    const ended = await client.send(new ListTasksCommand({ cluster: 'main', desiredStatus: 'STOPPED' }));
    expect(ended.taskArns).toEqual([arns[0]]);
    expect((await client.send(new ListTasksCommand({ cluster: 'main', family: 'absent' }))).taskArns).toEqual(
      [],
    );
  });

  it('describe unknown tasks as missing', async () => {
    await start([definition(WAITS)]);
    const output = await client.send(new DescribeTasksCommand({ cluster: 'main', tasks: ['abc'] }));
    expect(output.tasks).toEqual([]);
    expect(output.failures).toEqual([
      { arn: 'arn:aws:ecs:eu-central-1:000000000000:task/main/abc', reason: 'MISSING' },
    ]);
  });

  it('are refused if unknown, wrongly signed, or the fault hook wants it', async () => {
    await start([definition(WAITS)], {
      onRequest: ({ operation }) =>
        operation === 'ListTasks' ? { error: { status: 400, code: 'ThrottlingException' } } : undefined,
    });
    await expect(
      client.send(new RegisterTaskDefinitionCommand({ family: 'x', containerDefinitions: [] })),
    ).rejects.toMatchObject({ name: 'UnknownOperationException' });
    await expect(client.send(new ListTasksCommand({ cluster: 'main' }))).rejects.toMatchObject({
      name: 'ThrottlingException',
    });
    const credentials = { ...CREDENTIALS, accessKeyId: 'other' };
    client = new ECSClient({ endpoint: server?.endpoint ?? '', region: REGION, credentials, maxAttempts: 1 });
    await expect(run()).rejects.toMatchObject({ name: 'UnrecognizedClientException' });
  });
});

it('ends all tasks when it closes', async () => {
  await start([definition(`process.on('SIGTERM', () => process.exit(0)); ${WAITS}`)]);
  await run({ count: 2 });
  await logged('waits', 2);
  const pids = server?.tasks().map(({ pid }) => pid ?? 0) ?? [];
  await server?.close();
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});

it('deletes what a task left in its private folder', async () => {
  const source = `import fs from 'node:fs'; fs.writeFileSync(process.env.TMPDIR + '/left', ''); console.log(process.env.TMPDIR);`;
  const scratchDir = join(root, 'scratch');
  await start([definition(source)], { scratchDir });
  await run();
  await stopped(1);
  await server?.close();
  expect(lines[0]?.startsWith(scratchDir)).toBe(true);
  expect(readdirSync(scratchDir)).toEqual([]);
});
