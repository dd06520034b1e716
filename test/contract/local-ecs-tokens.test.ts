import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ECSClient, RunTaskCommand, type RunTaskCommandInput, StopTaskCommand } from '@aws-sdk/client-ecs';
import { expect, it, onTestFinished } from 'vitest';
import { startEcsServer } from '../../src/local/ecs/server.ts';

const credentials = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'local-secret' };
const region = 'eu-central-1';

/** A server with room for one task, which waits until it is stopped. */
async function start() {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'local-ecs-tokens-')));
  let notify = (): void => undefined;
  const server = await startEcsServer({
    credentials,
    region,
    clusters: ['main'],
    taskDefinitions: [
      {
        family: 'worker',
        arn: 'arn:aws:ecs:eu-central-1:000000000000:task-definition/worker:3',
        containerName: 'main',
        command: ['sleep', '600'],
        cwd: root,
        environment: {},
        memoryMb: 256,
      },
    ],
    maxTasks: 1,
    logDir: join(root, 'logs'),
    nodePath: process.execPath,
    extraEnvironment: {},
    onTaskChange: () => {
      notify();
    },
  });
  const client = new ECSClient({ endpoint: server.endpoint, region, credentials, maxAttempts: 1 });
  onTestFinished(async () => {
    client.destroy();
    await server.close();
    await rm(root, { recursive: true, force: true });
  });
  return {
    run: (input: Partial<RunTaskCommandInput> = {}) =>
      client.send(
        new RunTaskCommand({
          cluster: 'main',
          taskDefinition: 'worker',
          launchType: 'FARGATE',
          networkConfiguration: { awsvpcConfiguration: { subnets: ['subnet-a'] } },
          ...input,
        }),
      ),
    stop: async (task = ''): Promise<void> => {
      const stopped = new Promise<void>((resolve) => {
        notify = (): void => {
          if (server.tasks().every(({ lastStatus }) => lastStatus === 'STOPPED')) resolve();
        };
      });
      await client.send(new StopTaskCommand({ cluster: 'main', task }));
      notify();
      await stopped;
    },
  };
}

it('answers a client token that it has seen as before, also where it had no room, whatever room there is by then', async () => {
  const { run, stop } = await start();
  const first = await run({ clientToken: 'first' });
  const full = { tasks: [], failures: [{ reason: 'RESOURCE:CPU' }] };
  expect(await run({ clientToken: 'same' })).toMatchObject(full);
  await stop(first.tasks?.[0]?.taskArn);
  expect(await run({ clientToken: 'same' })).toMatchObject(full);
  expect(await run({ clientToken: 'another' })).toMatchObject({ tasks: [{}], failures: [] });
});

it('names what a client token has started to a call that is another one', async () => {
  const { run } = await start();
  const arn = (await run({ clientToken: 'first' })).tasks?.[0]?.taskArn;
  await run({ clientToken: 'none' });
  const conflict = (clientToken: string, resourceIds: readonly unknown[]) =>
    expect(run({ clientToken, startedBy: 'other' })).rejects.toMatchObject({
      name: 'ConflictException',
      resourceIds,
    });
  await conflict('first', [arn]);
  await conflict('none', []);
});
