import {
  DescribeTasksCommand,
  ConflictException,
  ECSClient,
  RunTaskCommand,
  StopTaskCommand,
} from '@aws-sdk/client-ecs';
import { InvokeCommand, LambdaClient, LambdaServiceException } from '@aws-sdk/client-lambda';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, it } from 'vitest';
import { LambdaEcsLauncher, type LauncherPlaces } from '../../../src/adapters/aws/lambda-ecs-launcher.ts';
import { EcsTaskStopper } from '../../../src/adapters/aws/ecs-task-stopper.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { LaunchRequest } from '../../../src/ports/launcher.ts';
import { attempt, freshJobId } from '../../contract/ports/builders.ts';

const lambda = mockClient(LambdaClient);
const ecs = mockClient(ECSClient);
const places: LauncherPlaces = {
  workerFunctions: { small: 'fn-small', medium: 'fn-medium', large: 'fn-large', xlarge: 'fn-xlarge' },
  cluster: 'cluster',
  taskDefinition: 'definition',
  taskContainer: 'worker',
  subnets: [{ id: 's1' }, { id: 's2' }],
  securityGroups: ['g'],
};
const launcher = new LambdaEcsLauncher(
  { lambda: new LambdaClient({ region: 'us-east-1' }), ecs: new ECSClient({ region: 'us-east-1' }) },
  places,
);
const request = (kind: 'lambda' | 'fargate', index = 0): LaunchRequest => ({
  kind,
  size: 'large',
  payload: {
    jobId: freshJobId(),
    attemptId: attempt(index),
    shards: 4,
    stageKey: 'k',
    inputs: [],
    heartbeatMs: 1_000,
  },
});
const fault = (name: string, httpStatusCode: number, message = 'why'): LambdaServiceException =>
  new LambdaServiceException({ name, message, $fault: 'client', $metadata: { httpStatusCode } });

beforeEach(() => {
  lambda.reset();
  ecs.reset();
});

describe('launching', () => {
  it('invokes the function of the size asynchronously with the payload', async () => {
    lambda.on(InvokeCommand).resolves({ StatusCode: 202 });
    const one = request('lambda');
    expect(await launcher.launch([one])).toEqual([{ attemptId: 'map/0/0', outcome: 'accepted' }]);
    const input = lambda.commandCalls(InvokeCommand)[0]?.args[0].input;
    expect(input).toMatchObject({ FunctionName: 'fn-large', InvocationType: 'Event' });
    expect(input?.Payload).toEqual(new TextEncoder().encode(JSON.stringify(one.payload)));
  });

  it('names the job as tenant where the worker functions isolate tenants, and never elsewhere', async () => {
    lambda.on(InvokeCommand).resolves({ StatusCode: 202 });
    const one = request('lambda');
    const payload = { ...one.payload, jobId: 'nightly-2-0123456789ab' as JobId };
    await launcher.launch([{ ...one, payload }]);
    await new LambdaEcsLauncher(
      { lambda: new LambdaClient({ region: 'us-east-1' }), ecs: new ECSClient({ region: 'us-east-1' }) },
      { ...places, isPerTenant: true },
    ).launch([{ ...one, payload }]);
    expect(lambda.commandCalls(InvokeCommand).map(({ args }) => args[0].input.TenantId)).toEqual([
      undefined,
      'nightly-2',
    ]);
  });

  it('runs one Fargate task with the payload in its environment and a token against repeats', async () => {
    ecs.on(RunTaskCommand).resolves({ tasks: [{}] });
    const one = request('fargate');
    for (const each of [one, one]) await launcher.launch([each]);
    const [first, second] = ecs.commandCalls(RunTaskCommand).map(({ args }) => args[0].input);
    expect(first).toMatchObject({
      cluster: 'cluster',
      taskDefinition: 'definition',
      launchType: 'FARGATE',
      count: 1,
      networkConfiguration: {
        awsvpcConfiguration: { subnets: ['s1', 's2'], securityGroups: ['g'], assignPublicIp: 'ENABLED' },
      },
      overrides: {
        cpu: '2048',
        memory: '4096',
        containerOverrides: [
          {
            name: 'worker',
            environment: [
              { name: 'OUTRIDER_ATTEMPT', value: JSON.stringify(one.payload) },
              { name: 'OUTRIDER_MEMORY_MB', value: '4096' },
              {
                name: 'NODE_OPTIONS',
                value: '--max-semi-space-size=4 --expose-gc --max-old-space-size=3686',
              },
            ],
          },
        ],
      },
    });
    expect(first?.clientToken).toMatch(/^[0-9a-f]{64}$/);
    expect(second?.clientToken).toBe(first?.clientToken);
  });

  it.each([
    [fault('TooManyRequestsException', 429), 'throttled', undefined],
    [fault('ServiceException', 500), 'throttled', true],
    [fault('ResourceConflictException', 409), 'throttled', true],
    [new Error('connect ECONNREFUSED'), 'throttled', true],
    [fault('ThrottlingException', 400), 'throttled', undefined],
    [fault('ResourceNotFoundException', 404), 'refused', undefined],
    [fault('AccessDeniedException', 403), 'refused', undefined],
    [fault('InvalidRequestContentException', 400), 'refused', undefined],
  ])('takes %s for %s, and no answer for no want of room (%s)', async (error, outcome, isUnanswered) => {
    lambda.on(InvokeCommand).rejects(error);
    const [told] = await launcher.launch([request('lambda')]);
    expect([told?.outcome, told?.isUnanswered]).toEqual([outcome, isUnanswered]);
  });

  it.each([
    [fault('ServerException', 500), true],
    [new Error('connect ECONNREFUSED'), true],
    [fault('ThrottlingException', 400), undefined],
  ])('tells want of room on Fargate and no answer apart: %s', async (error, isUnanswered) => {
    ecs.on(RunTaskCommand).rejects(error);
    const [told] = await launcher.launch([request('fargate')]);
    expect([told?.outcome, told?.isUnanswered]).toEqual(['throttled', isUnanswered]);
  });

  it('counts as launched what ECS has run before under the same token, from another payload', async () => {
    const conflict = new ConflictException({ message: 'why', $metadata: {}, resourceIds: ['task/1'] });
    ecs.on(RunTaskCommand).rejects(conflict);
    expect(await launcher.launch([request('fargate')])).toEqual([
      { attemptId: 'map/0/0', outcome: 'accepted' },
    ]);
  });

  it('does not take a conflict of Lambda for a launch', async () => {
    lambda.on(InvokeCommand).rejects(fault('ConflictException', 409));
    expect(await launcher.launch([request('lambda')])).toMatchObject([{ outcome: 'refused' }]);
  });

  it('uses one token for an attempt, whatever copies it is to read', async () => {
    ecs.on(RunTaskCommand).resolves({ tasks: [{}] });
    const one = request('fargate');
    const other = { ...one, payload: { ...one.payload, copies: { map: { 3: 1 } } } };
    for (const each of [one, other]) await launcher.launch([each]);
    const [first, second] = ecs.commandCalls(RunTaskCommand).map(({ args }) => args[0].input);
    expect(second?.clientToken).toBe(first?.clientToken);
    expect(second?.overrides).not.toEqual(first?.overrides);
  });

  const sentPayload = (): unknown => {
    const { overrides } = ecs.commandCalls(RunTaskCommand)[0]?.args[0].input ?? {};
    const text = overrides?.containerOverrides?.[0]?.environment?.[0]?.value;
    return text === undefined ? undefined : JSON.parse(text);
  };
  const copiesOf = (tasks: number) => ({
    map: Object.fromEntries(Array.from({ length: tasks }, (_, task) => [String(10_000 + task), 1])),
  });

  // Each copy takes 12 characters (\"10000\":1,) of the 8,192 that ECS takes in all.
  it('names copies to a Fargate task where ECS takes so many, and else leaves it to the winners', async () => {
    ecs.on(RunTaskCommand).resolves({ tasks: [{}] });
    const { payload, ...rest } = request('fargate');
    const few = { ...payload, keepOutput: true, copies: copiesOf(600) };
    await launcher.launch([{ ...rest, payload: few }]);
    expect(sentPayload()).toEqual(few);
    ecs.resetHistory();
    await launcher.launch([{ ...rest, payload: { ...few, copies: copiesOf(700) } }]);
    expect(sentPayload()).toEqual({ ...payload, keepOutput: true });
  });

  it('names all copies to a Lambda function', async () => {
    lambda.on(InvokeCommand).resolves({ StatusCode: 202 });
    const one = request('lambda');
    const payload = { ...one.payload, copies: copiesOf(10_000) };
    await launcher.launch([{ ...one, payload }]);
    expect(lambda.commandCalls(InvokeCommand)[0]?.args[0].input.Payload).toEqual(
      new TextEncoder().encode(JSON.stringify(payload)),
    );
  });

  it.each([
    ['Capacity is unavailable at this time. Please try again later', 'throttled'],
    ['RESOURCE:CPU', 'throttled'],
    ['MISSING', 'refused'],
  ])('takes the failure %j of RunTask for %s', async (reason, outcome) => {
    ecs.on(RunTaskCommand).resolves({ failures: [{ reason }] });
    expect(await launcher.launch([request('fargate')])).toMatchObject([{ outcome, message: reason }]);
  });

  it('answers in the order of requests, whatever fails among them', async () => {
    lambda.on(InvokeCommand).rejectsOnce(fault('TooManyRequestsException', 429)).resolves({});
    ecs.on(RunTaskCommand).resolves({ tasks: [{}] });
    const kinds = ['lambda', 'fargate', 'lambda', 'fargate', 'lambda'] as const;
    const outcomes = await launcher.launch(kinds.map((kind, index) => request(kind, index)));
    expect(outcomes.map(({ attemptId }) => attemptId)).toEqual([
      'map/0/0',
      'map/1/0',
      'map/2/0',
      'map/3/0',
      'map/4/0',
    ]);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual([
      'throttled',
      'accepted',
      'accepted',
      'accepted',
      'accepted',
    ]);
  });
});

describe('launching on Spot', () => {
  const onSpot = new LambdaEcsLauncher(
    { lambda: new LambdaClient({ region: 'us-east-1' }), ecs: new ECSClient({ region: 'us-east-1' }) },
    { ...places, isSpot: true },
  );
  const asked = () => ecs.commandCalls(RunTaskCommand).map(({ args }) => args[0].input);
  const providers = () =>
    asked().map(({ launchType, capacityProviderStrategy }) => [
      launchType,
      ...(capacityProviderStrategy ?? []).map(({ capacityProvider }) => capacityProvider),
    ]);
  /** What a cluster has no provider for is started by its launch type alone. */
  const thenOnDemand = [[undefined, 'FARGATE_SPOT'], ['FARGATE']];
  const full =
    'Capacity is unavailable at this time. Please try again later or in a different availability zone';
  const later = (index: number, number: number): LaunchRequest => {
    const { payload, ...rest } = request('fargate');
    return { ...rest, payload: { ...payload, attemptId: attempt(index, number) } };
  };

  it('has first attempts there by its provider, and later ones on demand, for which the cluster needs none', async () => {
    ecs.on(RunTaskCommand).resolves({ tasks: [{}] });
    expect(await onSpot.launch([request('fargate'), later(0, 1)])).toMatchObject([
      { outcome: 'accepted' },
      { outcome: 'accepted' },
    ]);
    expect(providers()).toEqual(thenOnDemand);
    const names = asked().map(({ overrides }) =>
      overrides?.containerOverrides?.[0]?.environment?.map(({ name }) => name),
    );
    const always = ['OUTRIDER_ATTEMPT', 'OUTRIDER_MEMORY_MB', 'NODE_OPTIONS'];
    expect(names).toEqual([[...always, 'OUTRIDER_ON_SPOT'], always]);
  });

  it.each([
    ['among the failures', () => ecs.on(RunTaskCommand).resolvesOnce({ failures: [{ reason: full }] })],
    ['as an error', () => ecs.on(RunTaskCommand).rejectsOnce(fault('ClientException', 400, full))],
  ])(
    'goes on demand at once where Spot has no room, told %s, under a token of its own',
    async (_, refuse) => {
      refuse().resolves({ tasks: [{}] });
      expect(await onSpot.launch([request('fargate')])).toEqual([
        { attemptId: 'map/0/0', outcome: 'accepted' },
      ]);
      expect(providers()).toEqual(thenOnDemand);
      const [first, second] = asked();
      expect(first?.clientToken).not.toBe(second?.clientToken);
    },
  );

  it('goes on demand once, and may be tried later where there is no room either', async () => {
    ecs.on(RunTaskCommand).resolves({ failures: [{ reason: full }] });
    expect(await onSpot.launch([request('fargate')])).toEqual([
      { attemptId: 'map/0/0', outcome: 'throttled', message: full },
    ]);
    expect(asked()).toHaveLength(2);
  });

  it.each([
    [
      'InvalidParameterException',
      'Error retrieving security group information for [sg-1]: Request limit exceeded. (ErrorCode: RequestLimitExceeded)',
    ],
    [
      'InvalidParameterException',
      'InsufficientFreeAddressesInSubnet: the subnet subnet-1 does not have enough free addresses',
    ],
    ['ClientException', 'NetworkInterfaceLimitExceeded: the maximum number of network interfaces is reached'],
    ['ThrottlingException', 'Rate exceeded'],
  ])(
    'may be tried later, and is asked for once, where on demand were no better: %s %s',
    async (name, why) => {
      ecs.on(RunTaskCommand).rejects(fault(name, 400, why));
      expect(await onSpot.launch([request('fargate')])).toEqual([
        { attemptId: 'map/0/0', outcome: 'throttled', message: `${name}: ${why}` },
      ]);
      expect(asked()).toHaveLength(1);
    },
  );

  it.each([
    'The specified capacity provider FARGATE_SPOT was not found.',
    'The specified capacity provider strategy cannot contain a capacity provider that is not associated with the cluster.',
  ])('goes on demand at once where the cluster has no Spot (any more): %s', async (why) => {
    ecs
      .on(RunTaskCommand)
      .rejectsOnce(fault('InvalidParameterException', 400, why))
      .resolves({ tasks: [{}] });
    expect(await onSpot.launch([request('fargate')])).toEqual([
      { attemptId: 'map/0/0', outcome: 'accepted' },
    ]);
    expect(providers()).toEqual(thenOnDemand);
  });

  it.each([
    [
      'InvalidParameterException',
      "Error retrieving subnet information for [subnet-1]: The subnet ID 'subnet-1' does not exist (ErrorCode: InvalidSubnetID.NotFound)",
    ],
    ['ClusterNotFoundException', 'Cluster not found.'],
  ])('is refused at once where it never will: %s %s', async (name, why) => {
    ecs.on(RunTaskCommand).rejects(fault(name, 400, why));
    expect(await onSpot.launch([request('fargate')])).toEqual([
      { attemptId: 'map/0/0', outcome: 'refused', message: `${name}: ${why}` },
    ]);
    expect(asked()).toHaveLength(1);
  });
});

describe('stopping', () => {
  const stopper = new EcsTaskStopper(new ECSClient({ region: 'us-east-1' }), 'cluster');
  const task = 'arn:aws:ecs:us-east-1:123456789012:task/cluster/0123456789abcdef';

  it('stops a Fargate task, and does not throw when that fails', async () => {
    ecs.on(StopTaskCommand).resolvesOnce({}).rejects(new Error('gone'));
    await launcher.stop({ kind: 'fargate', node: task });
    await launcher.stop({ kind: 'fargate', node: task });
    const [first, second] = ecs.commandCalls(StopTaskCommand);
    expect(first?.args[0].input).toMatchObject({ cluster: 'cluster', task });
    expect(second?.args[0].input).toMatchObject({ cluster: 'cluster', task });
  });

  it('names what kept a task from being stopped, but for its end', async () => {
    ecs
      .on(StopTaskCommand)
      .resolvesOnce({})
      .rejectsOnce(fault('InvalidParameterException', 400, 'The referenced task was not found.'))
      .rejects(fault('AccessDeniedException', 400, 'not authorized'));
    expect(await stopper.stop(task)).toBeUndefined();
    expect(await stopper.stop(task)).toBeUndefined();
    expect(await stopper.stop(task)).toBe('AccessDeniedException: not authorized');
  });

  it('asks again where ECS has refused it for its rate, four times at most, and says when that did not help', async () => {
    const throttled = fault('ThrottlingException', 400, 'Rate exceeded');
    ecs.on(StopTaskCommand).rejectsOnce(throttled).rejectsOnce(fault('ServerException', 500)).resolves({});
    expect(await launcher.stop({ kind: 'fargate', node: task })).toBeUndefined();
    expect(ecs.commandCalls(StopTaskCommand)).toHaveLength(3);
    ecs.reset();
    ecs.on(StopTaskCommand).rejects(throttled);
    expect(await launcher.stop({ kind: 'fargate', node: task })).toBe('ThrottlingException: Rate exceeded');
    expect(ecs.commandCalls(StopTaskCommand)).toHaveLength(4);
  });

  it('asks for nothing where a node is no task: an environment of Lambda, or a task that nobody told its name', async () => {
    for (const node of ['w/2026/11/26/[$LATEST]01', 'fargate/ip-10-0-0-1'])
      expect(await stopper.stop(node)).toBeUndefined();
    expect(ecs.calls()).toHaveLength(0);
  });

  it('finds which tasks nobody has stopped, a hundred by a call, and asks about nothing else', async () => {
    const tasks = Array.from({ length: 150 }, (_, index) => `${task}${String(index)}`);
    ecs
      .on(DescribeTasksCommand)
      .resolvesOnce({
        tasks: [
          { taskArn: `${task}0`, desiredStatus: 'RUNNING' },
          { taskArn: `${task}1`, desiredStatus: 'STOPPED' },
        ],
        failures: [{ arn: `${task}2`, reason: 'MISSING' }],
      })
      .rejects(fault('AccessDeniedException', 400, 'not authorized'));
    const onLambda = Array.from({ length: 10_001 }, (_, at) => `outrider-worker/2026/[$LATEST]${String(at)}`);
    expect(await stopper.living([...onLambda, ...tasks, ...tasks])).toEqual({
      nodes: [`${task}0`],
      wrong: 'AccessDeniedException: not authorized',
    });
    const calls = ecs.commandCalls(DescribeTasksCommand).map(({ args: [{ input }] }) => input.tasks?.length);
    expect(calls).toEqual([100, 50]);
    expect(await stopper.living(onLambda)).toEqual({ nodes: [] });
    expect(ecs.calls()).toHaveLength(2);
  });

  it('can do nothing about a Lambda invocation', async () => {
    await launcher.stop({ kind: 'lambda', node: 'stream' });
    expect(ecs.calls()).toHaveLength(0);
    expect(lambda.calls()).toHaveLength(0);
  });
});
