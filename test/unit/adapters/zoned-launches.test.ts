import { ECSClient, RunTaskCommand } from '@aws-sdk/client-ecs';
import { LambdaClient, LambdaServiceException } from '@aws-sdk/client-lambda';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, it } from 'vitest';
import { LambdaEcsLauncher, type LauncherPlaces } from '../../../src/adapters/aws/lambda-ecs-launcher.ts';
import type { LaunchRequest } from '../../../src/ports/launcher.ts';
import { fargateLaunch, freshJobId } from '../../contract/ports/builders.ts';

const ecs = mockClient(ECSClient);
const launcherIn = (more: Partial<LauncherPlaces> = {}): LambdaEcsLauncher =>
  new LambdaEcsLauncher(
    { lambda: new LambdaClient({ region: 'us-east-1' }), ecs: new ECSClient({ region: 'us-east-1' }) },
    {
      workerFunctions: {},
      cluster: 'cluster',
      taskDefinition: 'definition',
      taskContainer: 'worker',
      subnets: [
        { id: 'a1', zone: 'us-east-1a' },
        { id: 'b1', zone: 'us-east-1b' },
        { id: 'a2', zone: 'us-east-1a' },
      ],
      ...more,
    },
  );
const jobId = freshJobId();
const inZone = (index: number, zone?: string): LaunchRequest => ({
  ...fargateLaunch(jobId, index),
  ...(zone === undefined ? {} : { zone }),
});

beforeEach(() => {
  ecs.reset();
});

describe('launching on Fargate in a zone', () => {
  const full = 'Capacity is unavailable at this time.';
  const asked = () =>
    ecs.commandCalls(RunTaskCommand).map(({ args: [{ input }] }) => ({
      count: input.count,
      subnets: input.networkConfiguration?.awsvpcConfiguration?.subnets,
      provider: input.capacityProviderStrategy?.[0]?.capacityProvider ?? input.launchType,
      token: input.clientToken,
    }));

  it('tells the zones of its subnets, and none where nobody has told them', () => {
    expect(launcherIn().zones()).toEqual(['us-east-1a', 'us-east-1b']);
    expect(launcherIn({ subnets: [{ id: 'a1' }] }).zones()).toEqual([]);
  });

  it('starts tasks of one zone together in the subnets of that zone, and others in any', async () => {
    ecs.on(RunTaskCommand).resolves({ tasks: [{}, {}] });
    const requests = [inZone(0, 'us-east-1a'), inZone(1, 'us-east-1b'), inZone(2, 'us-east-1a'), inZone(3)];
    expect(await launcherIn().launch(requests)).toEqual(
      [0, 1, 2, 3].map((task) => ({ attemptId: `map/${String(task)}/0`, outcome: 'accepted' })),
    );
    expect(asked()).toMatchObject([
      { count: 2, subnets: ['a1', 'a2'] },
      { count: 1, subnets: ['b1'] },
      { count: 1, subnets: ['a1', 'b1', 'a2'] },
    ]);
  });

  it('starts a task of a zone without subnets in any', async () => {
    ecs.on(RunTaskCommand).resolves({ tasks: [{}] });
    await launcherIn().launch([inZone(0, 'us-east-1f')]);
    expect(asked()).toMatchObject([{ subnets: ['a1', 'b1', 'a2'] }]);
  });

  it.each([
    full,
    'InsufficientFreeAddressesInSubnet: the subnet subnet-1 does not have enough free addresses',
  ])(
    'goes to any zone at once with what the zone has no place for, under a token of its own: %s',
    async (why) => {
      ecs
        .on(RunTaskCommand)
        .resolvesOnce({ tasks: [{}], failures: [{ reason: why }] })
        .resolves({ tasks: [{}] });
      expect(await launcherIn().launch([inZone(0, 'us-east-1a'), inZone(1, 'us-east-1a')])).toEqual([
        { attemptId: 'map/0/0', outcome: 'accepted' },
        { attemptId: 'map/1/0', outcome: 'accepted' },
      ]);
      const [first, second, ...others] = asked();
      expect([first, second]).toMatchObject([
        { count: 2, subnets: ['a1', 'a2'] },
        { count: 1, subnets: ['a1', 'b1', 'a2'] },
      ]);
      expect(others).toEqual([]);
      expect(second?.token).not.toBe(first?.token);
    },
  );

  it('may be tried later where there is no room in any, and is not asked for elsewhere where calls are too many', async () => {
    ecs.on(RunTaskCommand).resolves({ failures: [{ reason: full }] });
    const one = [inZone(0, 'us-east-1b')];
    expect(await launcherIn().launch(one)).toEqual([
      { attemptId: 'map/0/0', outcome: 'throttled', message: full },
    ]);
    expect(asked()).toHaveLength(2);
    ecs.reset();
    ecs.on(RunTaskCommand).rejects(
      new LambdaServiceException({
        name: 'ThrottlingException',
        message: 'Rate exceeded',
        $fault: 'client',
        $metadata: { httpStatusCode: 400 },
      }),
    );
    expect(await launcherIn().launch(one)).toMatchObject([{ outcome: 'throttled' }]);
    expect(asked()).toHaveLength(1);
  });

  const quota = 'You have reached the limit on the number of tasks you can run concurrently';

  it('is not asked for elsewhere where the account runs as many as it may, but on demand for Spot', async () => {
    ecs.on(RunTaskCommand).resolves({ failures: [{ reason: quota }] });
    expect(await launcherIn().launch([inZone(0, 'us-east-1b')])).toMatchObject([{ outcome: 'throttled' }]);
    expect(asked()).toHaveLength(1);
    await launcherIn({ isSpot: true }).launch([inZone(0, 'us-east-1b')]);
    expect(asked().at(-1)).toMatchObject({ provider: 'FARGATE', subnets: ['a1', 'b1', 'a2'] });
  });

  it('goes to any zone where there is no Fargate in the one, and is refused where there is none in any', async () => {
    const none = new LambdaServiceException({
      name: 'InvalidParameterException',
      message: 'Fargate is not supported in the requested availability zone: us-east-1b',
      $fault: 'client',
      $metadata: { httpStatusCode: 400 },
    });
    ecs
      .on(RunTaskCommand)
      .rejectsOnce(none)
      .resolves({ tasks: [{}] });
    expect(await launcherIn().launch([inZone(0, 'us-east-1b')])).toMatchObject([{ outcome: 'accepted' }]);
    expect(asked()).toMatchObject([{ subnets: ['b1'] }, { subnets: ['a1', 'b1', 'a2'] }]);
    ecs.reset();
    ecs.on(RunTaskCommand).rejects(none);
    expect(await launcherIn().launch([inZone(0, 'us-east-1b')])).toMatchObject([{ outcome: 'refused' }]);
    expect(asked()).toHaveLength(2);
  });

  it('tries Spot in the zone, then Spot anywhere, then on demand', async () => {
    ecs.on(RunTaskCommand).resolves({ failures: [{ reason: full }] });
    await launcherIn({ isSpot: true }).launch([inZone(0, 'us-east-1b')]);
    expect(asked()).toMatchObject([
      { provider: 'FARGATE_SPOT', subnets: ['b1'] },
      { provider: 'FARGATE_SPOT', subnets: ['a1', 'b1', 'a2'] },
      { provider: 'FARGATE', subnets: ['a1', 'b1', 'a2'] },
    ]);
    expect(new Set(asked().map(({ token }) => token)).size).toBe(3);
  });
});
