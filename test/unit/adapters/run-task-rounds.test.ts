import { ConflictException, ECSClient, RunTaskCommand } from '@aws-sdk/client-ecs';
import { LambdaClient, LambdaServiceException } from '@aws-sdk/client-lambda';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, it } from 'vitest';
import { LambdaEcsLauncher } from '../../../src/adapters/aws/lambda-ecs-launcher.ts';
import { RunTaskRounds } from '../../../src/adapters/aws/run-task-rounds.ts';
import type { LaunchRequest } from '../../../src/ports/launcher.ts';
import { fargateLaunch, freshJobId } from '../../contract/ports/builders.ts';

const ecs = mockClient(ECSClient);
const fresh = (isSpot = false): LambdaEcsLauncher =>
  new LambdaEcsLauncher(
    { lambda: new LambdaClient({ region: 'us-east-1' }), ecs: new ECSClient({ region: 'us-east-1' }) },
    {
      workerFunctions: {},
      cluster: 'cluster',
      taskDefinition: 'definition',
      taskContainer: 'worker',
      subnets: [{ id: 's1' }],
      isSpot,
    },
  );
const jobId = freshJobId();
const request = (index: number): LaunchRequest => fargateLaunch(jobId, index);
const full = { failures: [{ reason: 'Capacity is unavailable at this time.' }] };
const fault = (httpStatusCode: number, message = 'why'): LambdaServiceException =>
  new LambdaServiceException({
    name: httpStatusCode < 500 ? 'ClientException' : 'ServerException',
    message,
    $fault: 'client',
    $metadata: { httpStatusCode },
  });
const tokens = () => ecs.commandCalls(RunTaskCommand).map(({ args }) => args[0].input.clientToken);
/** The tokens as small numbers, each by when it first came. */
const numbered = (): number[] => tokens().map((token) => [...new Set(tokens())].indexOf(token));

const launched = async (launcher: LambdaEcsLauncher, ...indices: number[]): Promise<string[]> =>
  (await launcher.launch(indices.map(request))).map(({ outcome }) => outcome);

beforeEach(() => {
  ecs.reset();
});

describe('a launch on Fargate that is made again', () => {
  it('is another call where ECS had no capacity, and the same where nobody has answered, or a task has started', async () => {
    const launcher = fresh();
    ecs
      .on(RunTaskCommand)
      .resolvesOnce(full)
      .rejectsOnce(fault(500))
      .rejectsOnce(new Error('read ECONNRESET'))
      .resolvesOnce(full)
      .resolves({ tasks: [{}] });
    const outcomes = [];
    for (let launch = 0; launch < 6; launch++) outcomes.push(...(await launched(launcher, 0)));
    expect(outcomes).toEqual([...Array<string>(4).fill('throttled'), 'accepted', 'accepted']);
    expect(numbered()).toEqual([0, 1, 1, 1, 2, 2]);
  });

  it('is the same call where some of its tasks have started: those are not started twice', async () => {
    const launcher = fresh();
    ecs.on(RunTaskCommand).resolves({ tasks: [{}], ...full });
    expect(await launched(launcher, 0, 1)).toEqual(['accepted', 'throttled']);
    expect(await launched(launcher, 0, 1)).toEqual(['accepted', 'throttled']);
    expect(numbered()).toEqual([0, 0]);
  });

  it('goes through all its places anew, once none of them has started a task and each has answered', async () => {
    const launcher = fresh(true);
    ecs
      .on(RunTaskCommand)
      .resolvesOnce(full)
      .rejectsOnce(fault(500))
      .resolvesOnce(full)
      .rejectsOnce(fault(400, 'Capacity is unavailable at this time.'))
      .resolvesOnce(full)
      .resolves({ tasks: [{}] });
    for (let launch = 0; launch < 4; launch++) await launched(launcher, 0);
    // Spot and on demand each time; the last launch repeats what has started a task, and finds it on Spot.
    expect(numbered()).toEqual([0, 1, 0, 1, 2, 3, 2]);
  });

  it('is known to whoever takes the job over as far as it comes to what has started tasks', async () => {
    const first = fresh();
    ecs
      .on(RunTaskCommand)
      .resolvesOnce(full)
      .resolvesOnce({ tasks: [{}] });
    await launched(first, 0);
    await launched(first, 0);
    const [refused, started] = tokens();
    // ECS answers each token as before.
    ecs.reset();
    ecs.on(RunTaskCommand, { clientToken: refused ?? '' }).resolves(full);
    ecs.on(RunTaskCommand, { clientToken: started ?? '' }).resolves({ tasks: [{}] });
    const second = fresh();
    expect([await launched(second, 0), await launched(second, 0)]).toEqual([['throttled'], ['accepted']]);
  });

  it('with another payload stands as far as it has started tasks, and is another call where it has started none', async () => {
    const launcher = fresh();
    const conflict = (...resourceIds: string[]): ConflictException =>
      new ConflictException({ message: 'why', $metadata: { httpStatusCode: 400 }, resourceIds });
    ecs
      .on(RunTaskCommand)
      .rejectsOnce(conflict('task/1'))
      .rejectsOnce(conflict())
      .resolves({ tasks: [{}] });
    expect(await launched(launcher, 0, 1)).toEqual(['accepted', 'throttled']);
    expect([await launched(launcher, 1), await launched(launcher, 1)]).toEqual([['throttled'], ['accepted']]);
    expect(numbered()).toEqual([0, 1, 2]);
  });
});

it('remembers ten thousand batches, and forgets the one that has not been asked for longest', () => {
  const rounds = new RunTaskRounds();
  const vain = (index: number): void => {
    rounds.inVain([request(index)], ['told']);
  };
  for (let index = 0; index < 10_000; index++) vain(index);
  vain(0);
  vain(10_000);
  expect([0, 1, 2, 10_000].map((index) => rounds.of([request(index)]))).toEqual([2, 0, 1, 1]);
});
