import { describe, expect, it } from 'vitest';
import { synthesized } from './synthesized.ts';

const system = synthesized();
const functions = system.resources('AWS::Lambda::Function');

describe('functions', () => {
  it('are a worker of each size and who is told of their ends, the four steps, the two that watch, what computes forecasts, and the API, and nothing besides', () => {
    expect(
      functions.map(({ stack, properties }) => `${stack} ${String(properties['MemorySize'])}`).toSorted(),
    ).toEqual([
      'OutriderApi 512',
      'OutriderCompute 1769',
      'OutriderCompute 256',
      'OutriderCompute 3538',
      'OutriderCompute 7076',
      'OutriderCompute 884',
      'OutriderCoordinator 1024',
      'OutriderCoordinator 1769',
      'OutriderCoordinator 512',
      'OutriderCoordinator 512',
      'OutriderCoordinator 512',
      'OutriderCoordinator 512',
      'OutriderCoordinator 512',
    ]);
  });

  it.each(functions.map((found) => [found.logicalId, found] as const))(
    '%s runs on arm64 and Node 24',
    (_, found) => {
      expect(found.properties).toMatchObject({
        Architectures: ['arm64'],
        Runtime: 'nodejs24.x',
        Handler: 'index.handler',
      });
    },
  );

  it.each(functions.map((found) => [found.logicalId, found] as const))(
    '%s is never retried by Lambda, unless it is to settle a job, told of the end of a worker, or computes forecasts',
    (id, found) => {
      const configs = system
        .resources('AWS::Lambda::EventInvokeConfig')
        .filter(({ stack }) => stack === found.stack)
        .filter(
          ({ properties }) => JSON.stringify(properties['FunctionName']) === `{"Ref":"${found.logicalId}"}`,
        );
      expect(configs.map(({ properties }) => properties['MaximumRetryAttempts'])).toEqual([
        /^(settle|EndedWorker)/.test(id) ? 2 : id.startsWith('Forecast') ? 1 : 0,
      ]);
      // As long as a launched attempt may take to claim itself; others have no reason to wait.
      const age = configs[0]?.properties['MaximumEventAgeInSeconds'];
      if (found.stack === 'OutriderCompute') expect(age).toBe(900);
      else expect(Number(age)).toBeGreaterThanOrEqual(60);
    },
  );

  it('bring DuckDB in a layer of arm64 for workers alone, where the deployment wants it', () => {
    const withDuckDb = synthesized({ duckdb: 'true' });
    const layered = (from: typeof system) =>
      from
        .resources('AWS::Lambda::Function')
        .filter(({ properties }) => 'Layers' in properties)
        .map(({ logicalId }) => logicalId.replace(/[0-9A-F]{8}$/, ''));
    expect(layered(system)).toEqual([]);
    expect(layered(withDuckDb).toSorted()).toEqual([
      'Workerlarge',
      'Workermedium',
      'Workersmall',
      'Workerxlarge',
    ]);
    expect(
      withDuckDb.resources('AWS::Lambda::LayerVersion').map(({ properties }) => properties),
    ).toMatchObject([
      { CompatibleArchitectures: ['arm64'], CompatibleRuntimes: ['nodejs24.x', 'python3.14'] },
    ]);
  });

  it('have no concurrency of their own where nothing is said: an account of ten could not be deployed to', () => {
    expect(functions.filter(({ properties }) => 'ReservedConcurrentExecutions' in properties)).toEqual([]);
  });

  it('have what is reserved for the coordinator, and workers no more than their cap', () => {
    const reserved = synthesized({ coordinatorConcurrency: '20', workerConcurrency: 150 });
    const found = reserved.resources('AWS::Lambda::Function').map(({ stack, logicalId, properties }) => ({
      isWorker: stack === 'OutriderCompute' && logicalId.startsWith('Worker'),
      reserved: properties['ReservedConcurrentExecutions'],
    }));
    expect(found.filter(({ isWorker }) => isWorker).map((each) => each.reserved)).toEqual([
      150, 150, 150, 150,
    ]);
    // Steps of jobs, who ends jobs, computes forecasts and is told of workers' ends, and the API.
    expect(found.filter(({ isWorker }) => !isWorker).map((each) => each.reserved)).toEqual(
      Array.from({ length: 9 }, () => 20),
    );
  });

  it.each([
    [{}, undefined],
    [{ coordinatorConcurrency: '2' }, '1'],
    [{ coordinatorConcurrency: '20' }, '19'],
  ])('leave an execution to enlist jobs beside schedulers that serve them: %o', (context, most) => {
    const schedule = synthesized(context)
      .resources('AWS::Lambda::Function')
      .find(({ logicalId }) => logicalId.startsWith('schedule'));
    expect(schedule?.properties).toHaveProperty(['Environment', 'Variables', 'OUTRIDER_RESIDENTS']);
    const { Variables } = schedule?.properties['Environment'] as { Variables: Record<string, unknown> };
    expect(Variables['OUTRIDER_MOST_RESIDENTS']).toBe(most);
  });

  it.each([
    [{ workerConcurrency: '0' }, 'context "workerConcurrency": must be at least 1'],
    [{ coordinatorConcurrency: '1' }, 'context "coordinatorConcurrency": must be at least 2'],
    [
      { coordinatorConcurrency: 'many' },
      'context "coordinatorConcurrency": must be a whole number, not "many"',
    ],
    [{ workerConcurency: '5' }, 'context "workerConcurency": there is no such setting'],
  ])('are refused a concurrency that makes no sense: %o', (context, message) => {
    expect(() => synthesized(context)).toThrow(message);
  });

  it('wait for claims as long as Lambda keeps events, and longer than Fargate takes to start', () => {
    const patient = synthesized({ claimLeaseSeconds: 1_200 });
    const ages = patient
      .resources('AWS::Lambda::EventInvokeConfig')
      .filter(({ stack, properties }) => {
        const name = JSON.stringify(properties['FunctionName']);
        return stack === 'OutriderCompute' && /Worker(small|medium|large|xlarge)/.test(name);
      })
      .map(({ properties }) => properties['MaximumEventAgeInSeconds']);
    expect(ages).toEqual([1_200, 1_200, 1_200, 1_200]);
    expect(() => synthesized({ claimLeaseSeconds: 30 })).toThrow(
      'context "claimLeaseSeconds": must be at least 60: Lambda keeps asynchronous events no shorter',
    );
  });

  it('gives workers 15 minutes and scratch space that grows with memory', () => {
    const workers = functions.filter(
      ({ stack, logicalId }) => stack === 'OutriderCompute' && logicalId.startsWith('Worker'),
    );
    const facts = workers.map(({ properties }) => [
      properties['MemorySize'],
      properties['Timeout'],
      properties['EphemeralStorage'],
    ]);
    expect(facts).toEqual([
      [884, 900, { Size: 2048 }],
      [1769, 900, { Size: 4096 }],
      [3538, 900, { Size: 8192 }],
      [7076, 900, { Size: 10240 }],
    ]);
  });

  it('shares environments among all jobs, unless the deployment isolates them by name', () => {
    expect(functions.filter(({ properties }) => properties['TenancyConfig'] !== undefined)).toEqual([]);
    for (const tenantIsolation of [true, 'true']) {
      const isolated = synthesized({ tenantIsolation }).resources('AWS::Lambda::Function');
      expect(
        isolated
          .map(({ stack, properties }) => [stack, properties['TenancyConfig']])
          .filter(([, mode]) => mode),
      ).toEqual(Array.from({ length: 4 }, () => ['OutriderCompute', { TenantIsolationMode: 'PER_TENANT' }]));
      const told = isolated.filter(({ properties }) =>
        JSON.stringify(properties['Environment']).includes('"OUTRIDER_TENANT_ISOLATION":"true"'),
      );
      expect(told.map(({ stack }) => stack)).toEqual(Array.from({ length: 6 }, () => 'OutriderCoordinator'));
    }
    expect(synthesized({ tenantIsolation: 'false' }).resources('AWS::Lambda::Function')).toHaveLength(
      functions.length,
    );
    expect(() => synthesized({ tenantIsolation: 'yes' })).toThrow(
      'context "tenantIsolation": must be true or false',
    );
  });

  it('reserves concurrency for none, so that all slots are one pool', () => {
    expect(
      functions.filter(({ properties }) => properties['ReservedConcurrentExecutions'] !== undefined),
    ).toEqual([]);
  });

  it('tells the steps where everything is', () => {
    const schedule = functions.find(({ logicalId }) => logicalId.startsWith('schedule'));
    const environment = schedule?.properties['Environment'];
    expect(environment).toMatchObject({
      Variables: {
        OUTRIDER_TASK_DEFINITION: 'outrider-worker',
        OUTRIDER_TASK_CONTAINER: 'worker',
        OUTRIDER_TOTAL_SLOTS: { Ref: 'TotalSlots' },
        OUTRIDER_TICK_MS: { Ref: 'TickMs' },
        OUTRIDER_HEARTBEAT_MS: { Ref: 'HeartbeatMs' },
        OUTRIDER_LEASE_MS: { Ref: 'LeaseMs' },
        OUTRIDER_CLAIM_LEASE_MS: { 'Fn::If': ['HasClaimLeaseMs', { Ref: 'ClaimLeaseMs' }, '900000'] },
      },
    });
    expect(JSON.stringify(environment)).toContain('OUTRIDER_WORKER_FUNCTIONS');
  });

  it('offers the tuning parameters with the defaults for AWS', () => {
    const parameters = system.stacks.get('OutriderCoordinator')?.toJSON()['Parameters'] as unknown;
    expect(parameters).toMatchObject({
      TotalSlots: { Type: 'Number', Default: 900 },
      TickMs: { Default: 1000 },
      HeartbeatMs: { Default: 10000 },
      LeaseMs: { Default: 15000 },
      ClaimLeaseMs: { Default: 0 },
      FargateClaimLeaseMs: { Default: 600000 },
    });
  });
});

describe('credentials for user code', () => {
  it('are told by parameters of each stack: what another imports of one, nobody can change any more', () => {
    const exported = [...system.stacks.values()].flatMap((stack) => {
      const { Outputs = {}, Parameters = {} } = stack.toJSON() as {
        Outputs?: Record<string, { Value: { Ref?: string }; Export?: unknown }>;
        Parameters?: Record<string, unknown>;
      };
      return Object.values(Outputs).flatMap(({ Value, Export }) =>
        Export !== undefined && Value.Ref !== undefined && Value.Ref in Parameters ? [Value.Ref] : [],
      );
    });
    expect(exported).toEqual([]);
  });

  it('are given by no deployment that does not say so, and workers and API hear the same', () => {
    for (const stack of ['OutriderApi', 'OutriderCompute'])
      expect(system.stacks.get(stack)?.findParameters('UserCredentials')).toMatchObject({
        UserCredentials: { Default: 'false', AllowedValues: ['true', 'false'] },
      });
    const settings = functions.flatMap(({ stack, properties }) => {
      const { Variables } = properties['Environment'] as { Variables: Record<string, unknown> };
      const setting = Variables['OUTRIDER_USER_CREDENTIALS'];
      return setting === undefined ? [] : [`${stack} ${JSON.stringify(setting)}`];
    });
    expect(settings.toSorted()).toEqual([
      'OutriderApi {"Ref":"UserCredentials"}',
      ...Array.from({ length: 4 }, () => 'OutriderCompute {"Ref":"UserCredentials"}'),
    ]);
  });
});

describe('the Fargate task', () => {
  it('runs on arm64 under the family that the scheduler names', () => {
    expect(system.resources('AWS::ECS::TaskDefinition').map(({ properties }) => properties)).toMatchObject([
      {
        Family: 'outrider-worker',
        RequiresCompatibilities: ['FARGATE'],
        RuntimePlatform: { CpuArchitecture: 'ARM64' },
        ContainerDefinitions: [
          { Name: 'worker', StopTimeout: 30, LinuxParameters: { InitProcessEnabled: true } },
        ],
      },
    ]);
  });

  it('is told to the scheduler by its subnets, and the zone of each', () => {
    const environments = JSON.stringify(
      system.resources('AWS::Lambda::Function').find(({ logicalId }) => logicalId.startsWith('schedule'))
        ?.properties['Environment'],
    );
    const subnets = system.resources('AWS::EC2::Subnet');
    expect(subnets.length).toBeGreaterThan(1);
    // By the ids that CloudFormation has of the subnets' zones, in their order.
    const exported = subnets.map(
      ({ logicalId }) =>
        `{"Fn::ImportValue":"OutriderCompute:ExportsOutputFnGetAtt${logicalId}AvailabilityZoneId`,
    );
    const [, zones = ''] = /"OUTRIDER_SUBNET_ZONES":(.*?\]\]\})/.exec(environments) ?? [];
    expect(zones.match(/\{"Fn::ImportValue":"[^"]*?AvailabilityZoneId/g)).toEqual(exported);
  });

  it('has its tasks know the ids of its zones, whose names alone ECS tells them', () => {
    const subnets = system.resources('AWS::EC2::Subnet');
    const [task] = system.resources('AWS::ECS::TaskDefinition');
    const { Environment } = (
      task?.properties['ContainerDefinitions'] as [{ Environment: { Name: string; Value: unknown }[] }]
    )[0];
    expect(Environment.find(({ Name }) => Name === 'OUTRIDER_ZONE_IDS')?.Value).toEqual({
      'Fn::Join': [
        '',
        subnets.flatMap(({ logicalId, properties }, place) => [
          ...(place === 0 ? [] : [',']),
          properties['AvailabilityZone'],
          '=',
          { 'Fn::GetAtt': [logicalId, 'AvailabilityZoneId'] },
        ]),
      ],
    });
  });

  it('reaches directory buckets through a gateway where the deployment has any', () => {
    const gateways = system.resources('AWS::EC2::VPCEndpoint');
    expect(gateways.map(({ properties }) => JSON.stringify(properties['ServiceName']))).toEqual([
      expect.stringContaining('.s3"'),
      expect.stringContaining('.dynamodb"'),
      expect.stringContaining('.s3express"'),
    ]);
    expect(gateways.map(({ template }) => template['Condition'])).toEqual([
      undefined,
      undefined,
      'HasZonalZone',
    ]);
    const [s3, , express] = gateways;
    expect(express?.properties['RouteTableIds']).toEqual(s3?.properties['RouteTableIds']);
    expect(system.stacks.get(express?.stack ?? '')?.toJSON()).toMatchObject({
      Conditions: {
        HasZonalZone: {
          'Fn::Or': ['HasZonalZone1', 'HasZonalZone2', 'HasZonalZone3'].map((Condition) => ({ Condition })),
        },
      },
    });
  });

  it('stands in public subnets without NAT and accepts connections at one port of its own tasks alone', () => {
    expect(system.resources('AWS::EC2::NatGateway')).toEqual([]);
    const [group] = system.resources('AWS::EC2::SecurityGroup');
    expect(group?.properties['SecurityGroupIngress']).toBeUndefined();
    const own = { 'Fn::GetAtt': [group?.logicalId, 'GroupId'] };
    expect(
      system.resources('AWS::EC2::SecurityGroupIngress').map(({ properties }) => properties),
    ).toMatchObject([
      { GroupId: own, SourceSecurityGroupId: own, IpProtocol: 'tcp', FromPort: 7843, ToPort: 7843 },
    ]);
  });
});
