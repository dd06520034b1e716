import { DescribeTasksCommand, ECSClient, type Task } from '@aws-sdk/client-ecs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EmbeddedSystem } from '../support/embedded-system.ts';

let system: EmbeddedSystem;
beforeAll(async () => {
  system = await EmbeddedSystem.start({ slots: 2 });
}, 180_000);
afterAll(() => system.stop());

/** What ECS wants of a task, and why it is to stop. */
async function taskOf(node: string): Promise<Partial<Task>> {
  const { region, credentials, environment } = system.stack;
  const ecs = new ECSClient({ region, credentials, endpoint: environment['AWS_ENDPOINT_URL_ECS'] ?? '' });
  const described = await ecs.send(new DescribeTasksCommand({ cluster: node.split('/')[1], tasks: [node] }));
  return described.tasks?.[0] ?? {};
}

// Nothing else would end it: a task on Fargate has no limit of time, and is billed for as long as it is there.
it('stops the task on Fargate of an attempt that does not read that its job was cancelled', async () => {
  const input = await system.put('lines', Buffer.from('one\ntwo\n'));
  const jobId = await system.submit({
    name: 'hangs',
    policy: 'none',
    stages: [
      {
        name: 'only',
        operator: 'exec',
        // Its worker stands still from now on.
        options: { command: ['sh', '-c', 'kill -STOP "$PPID"; sleep 600'] },
        worker: { kind: 'fargate' },
        inputs: [{ s3: [input] }],
      },
    ],
  });
  const node = await system.until('a worker that stands still', async () => {
    const [attempt] = (await system.api.attempts(jobId)).attempts;
    const [worker] = system.processes('worker');
    return worker === undefined ? undefined : attempt?.node;
  });
  expect(await taskOf(node)).toMatchObject({ desiredStatus: 'RUNNING' });
  await system.api.cancel(jobId);
  expect(await system.ended(jobId)).toMatchObject({ state: 'cancelled' });
  const stopped = await system.until('a task that is to stop', async () => {
    const task = await taskOf(node);
    return task.desiredStatus === 'STOPPED' ? task : undefined;
  });
  expect(stopped.stoppedReason).toBe('the attempt is not needed');
});

it('stops the task of a worker that kept its output and stands still, once its job has succeeded', async () => {
  const input = await system.put('kept', Buffer.from('one\ntwo\n'));
  const worker = { kind: 'fargate' } as const;
  const jobId = await system.submit({
    name: 'keeps',
    policy: 'none',
    storage: 'worker-local',
    stages: [
      {
        name: 'map',
        operator: 'exec',
        options: { command: ['cat'] },
        worker,
        inputs: [{ s3: [input] }],
        partitions: 1,
      },
      {
        name: 'reduce',
        operator: 'exec',
        options: { command: ['sh', '-c', 'cat; sleep 5'] },
        worker,
        inputs: [{ stage: 'map', pattern: 'all-to-all' }],
      },
    ],
  });
  const attempt = await system.until('a reader at work', async () => {
    const { attempts } = await system.api.attempts(jobId);
    const isRead = attempts.some((each) => each.attemptId === 'reduce/0/0' && each.state === 'running');
    return isRead ? attempts.find(({ attemptId }) => attemptId === 'map/0/0') : undefined;
  });
  expect(attempt.state).toBe('done');
  const keeper = system.processes('').find(({ task }) => task === attempt.node);
  if (keeper === undefined) throw new Error('the worker has left');
  process.kill(keeper.pid, 'SIGSTOP');
  expect(await system.ended(jobId)).toMatchObject({ state: 'succeeded' });
  const stopped = await system.until('a task that is to stop', async () => {
    const task = await taskOf(attempt.node ?? '');
    return task.desiredStatus === 'STOPPED' ? task : undefined;
  });
  expect(stopped.stoppedReason).toBe('the attempt is not needed');
});
