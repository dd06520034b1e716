import { ECSClient, RunTaskCommand } from '@aws-sdk/client-ecs';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, it } from 'vitest';
import { LambdaEcsLauncher, type LauncherPlaces } from '../../../src/adapters/aws/lambda-ecs-launcher.ts';
import type { LaunchRequest } from '../../../src/ports/launcher.ts';
import { attempt, freshJobId } from '../../contract/ports/builders.ts';

const ecs = mockClient(ECSClient);
const places: LauncherPlaces = {
  workerFunctions: {},
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
const request = (index: number): LaunchRequest => ({
  kind: 'fargate',
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
beforeEach(() => {
  ecs.reset();
});

describe('launching many on Fargate', () => {
  const jobId = freshJobId();
  const many = (count: number, more: Partial<LaunchRequest['payload']> = {}): LaunchRequest[] =>
    Array.from({ length: count }, (_, task) => {
      const { payload, ...rest } = request(task);
      const inputs = [{ key: 'jobs/x/0.ndjson', start: task, end: task + 1 }];
      return { ...rest, payload: { ...payload, jobId, inputs, ...more } };
    });
  const calls = () =>
    ecs.commandCalls(RunTaskCommand).map(({ args: [{ input }] }) => {
      const text = input.overrides?.containerOverrides?.[0]?.environment?.[0]?.value ?? '';
      return { input, payload: JSON.parse(text) as LaunchRequest['payload'] };
    });
  const namedIn = ({ attemptId, batch = [] }: LaunchRequest['payload']): string[] => [
    attemptId,
    ...batch.map((each) => each.attemptId),
  ];
  const tasks = (count: number): { tasks: object[] } => ({
    tasks: Array.from({ length: count }, () => ({})),
  });
  const outcomes = async (requests: readonly LaunchRequest[], by = launcher): Promise<string[]> =>
    (await by.launch(requests)).map(({ attemptId, outcome }) => `${attemptId} ${outcome}`);

  it('starts ten with a call, and names each attempt once with what it reads', async () => {
    ecs.on(RunTaskCommand).callsFake(({ count }: { count: number }) => tasks(count));
    expect(await outcomes(many(23))).toEqual(
      Array.from({ length: 23 }, (_, task) => `map/${String(task)}/0 accepted`),
    );
    expect(calls().map(({ input }) => input.count)).toEqual([10, 10, 3]);
    expect(new Set(calls().flatMap(({ payload }) => namedIn(payload))).size).toBe(23);
    expect(calls()[2]?.payload).toMatchObject({
      attemptId: 'map/20/0',
      inputs: [{ start: 20, end: 21 }],
      batch: [
        { attemptId: 'map/21/0', inputs: [{ start: 21, end: 22 }] },
        { attemptId: 'map/22/0', inputs: [{ start: 22, end: 23 }] },
      ],
    });
    const tokens = calls().map(({ input }) => input.clientToken);
    expect(new Set(tokens).size).toBe(3);
    ecs.resetHistory();
    await launcher.launch(many(23));
    expect(calls().map(({ input }) => input.clientToken)).toEqual(tokens);
  });

  it('names for each what it is to take up, whichever it is that has something', async () => {
    ecs.on(RunTaskCommand).callsFake(({ count }: { count: number }) => tasks(count));
    const saved = { attempt: 0, dataBytes: 7, noteBytes: 8, noteCrc: 9 };
    const [one, two, three] = many(3) as [LaunchRequest, LaunchRequest, LaunchRequest];
    await launcher.launch([
      { ...one, payload: { ...one.payload, saved } },
      two,
      { ...three, payload: { ...three.payload, saved: { ...saved, attempt: 4 } } },
    ]);
    expect(
      calls().map(({ payload: { saved: own, batch = [] } }) => [own, ...batch.map((each) => each.saved)]),
    ).toEqual([[saved, undefined, { ...saved, attempt: 4 }]]);
  });

  it('counts the last as not launched where fewer were started, for they are claimed last', async () => {
    ecs.on(RunTaskCommand).resolves({ ...tasks(2), failures: [{ reason: 'RESOURCE:CPU' }] });
    expect(await outcomes(many(4))).toEqual([
      'map/0/0 accepted',
      'map/1/0 accepted',
      'map/2/0 throttled',
      'map/3/0 throttled',
    ]);
    ecs
      .on(RunTaskCommand)
      .rejects(Object.assign(new Error('Rate exceeded'), { name: 'ThrottlingException' }));
    expect(new Set((await launcher.launch(many(4))).map(({ outcome }) => outcome))).toEqual(
      new Set(['throttled']),
    );
  });

  it('asks on demand for those alone that Spot has no room for', async () => {
    const onSpot = new LambdaEcsLauncher(
      { lambda: new LambdaClient({ region: 'us-east-1' }), ecs: new ECSClient({ region: 'us-east-1' }) },
      { ...places, isSpot: true },
    );
    ecs
      .on(RunTaskCommand)
      .resolvesOnce({ ...tasks(1), failures: [{ reason: 'Capacity is unavailable at this time.' }] })
      .resolves({ ...tasks(1), failures: [{ reason: 'Capacity is unavailable at this time.' }] });
    expect(await outcomes(many(3), onSpot)).toEqual([
      'map/0/0 accepted',
      'map/1/0 accepted',
      'map/2/0 throttled',
    ]);
    expect(calls().map(({ payload }) => namedIn(payload))).toEqual([
      ['map/0/0', 'map/1/0', 'map/2/0'],
      ['map/1/0', 'map/2/0'],
    ]);
  });

  it('keeps apart what may not share overrides: sizes, stages, and what takes the place of a result', async () => {
    ecs.on(RunTaskCommand).callsFake(({ count }: { count: number }) => tasks(count));
    const [one, two, three, four] = many(4) as [LaunchRequest, LaunchRequest, LaunchRequest, LaunchRequest];
    const replacing = { ...three, payload: { ...three.payload, replaces: attempt(9) } };
    const ofOther = { ...four, payload: { ...four.payload, stageKey: 'other' } };
    await launcher.launch([one, { ...two, size: 'small' }, replacing, ofOther]);
    expect(calls().map(({ payload }) => namedIn(payload))).toEqual([
      ['map/0/0'],
      ['map/1/0'],
      ['map/2/0'],
      ['map/3/0'],
    ]);
  });

  it('makes more calls where ten do not fit into what ECS takes as overrides', async () => {
    ecs.on(RunTaskCommand).callsFake(({ count }: { count: number }) => tasks(count));
    const inputs = [{ key: 'k'.repeat(1_000), start: 0, end: 1 }];
    expect(new Set(await outcomes(many(10, { inputs })))).toHaveProperty('size', 10);
    for (const { input } of calls())
      expect(JSON.stringify(input.overrides).length).toBeLessThanOrEqual(8_192);
    expect(calls().flatMap(({ payload }) => namedIn(payload))).toHaveLength(10);
    expect(calls().length).toBeLessThanOrEqual(3);
  });
});
