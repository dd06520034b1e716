import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App } from 'aws-cdk-lib';
import { describe, expect, it } from 'vitest';
import { addSystem } from '../../cdk/system.ts';
import { cdkContext, synthesized } from './synthesized.ts';

const withFargate = synthesized();
const withSpot = synthesized({ fargate: 'spot' });
const without = synthesized({ fargate: 'off' });

const typesOf = (system: typeof without): string[] => [
  ...new Set(
    [...system.stacks.values()].flatMap((template) =>
      Object.values(template.toJSON()['Resources'] as Record<string, { Type: string }>).map(
        ({ Type }) => Type,
      ),
    ),
  ),
];
const schedulerOf = (system: typeof without): Record<string, unknown> => {
  const found = system
    .resources('AWS::Lambda::Function')
    .find(({ properties }) => String(properties['Description']).includes('schedule of a job'));
  const { Variables } = found?.properties['Environment'] as { Variables: Record<string, unknown> };
  return Variables;
};

describe('a deployment without Fargate', () => {
  it('has no cluster, no task, no network and no right to any', () => {
    expect(typesOf(without).filter((type) => /^AWS::(EC2|ECS|ECR)::/.test(type))).toEqual([]);
    const policies = JSON.stringify([
      ...without.resources('AWS::IAM::Policy'),
      ...without.resources('AWS::IAM::Role'),
    ]);
    expect(policies).not.toMatch(/"ecs:|iam:PassRole|ecs-tasks/);
    const rules = without.resources('AWS::Events::Rule').map(({ properties }) => JSON.stringify(properties));
    expect(rules.filter((rule) => rule.includes('aws.ecs'))).toEqual([]);
  });

  it('builds no image, so that it needs no Docker', () => {
    const outdir = mkdtempSync(join(tmpdir(), 'outrider-synth-'));
    try {
      const app = new App({ outdir, context: { ...cdkContext, fargate: 'off' } });
      addSystem(app);
      app.synth();
      const manifests = readdirSync(outdir).filter((name) => name.endsWith('.assets.json'));
      expect(manifests.length).toBeGreaterThan(0);
      for (const name of manifests) {
        const manifest = JSON.parse(readFileSync(join(outdir, name), 'utf8')) as { dockerImages?: object };
        expect(Object.keys(manifest.dockerImages ?? {})).toEqual([]);
      }
      expect(readdirSync(outdir).filter((name) => /Dockerfile/.test(name))).toEqual([]);
    } finally {
      rmSync(outdir, { recursive: true, force: true });
    }
  });

  it('tells its functions of none', () => {
    const names = Object.keys(schedulerOf(without));
    expect(names.filter((name) => /FARGATE|CLUSTER|TASK_|SUBNETS|SECURITY/.test(name))).toEqual([]);
    expect(schedulerOf(withFargate)).toMatchObject({
      OUTRIDER_FARGATE: 'true',
      OUTRIDER_TASK_CONTAINER: 'worker',
    });
  });
});

describe('a deployment with Fargate', () => {
  it.each([
    ['on demand', withFargate],
    ['on Spot', withSpot],
  ])(
    '%s makes its cluster without capacity providers, which an account without the role of ECS refuses',
    (_, system) => {
      expect(system.resources('AWS::ECS::Cluster').map(({ properties }) => properties)).toEqual([{}]);
      expect(typesOf(system)).not.toContain('AWS::EC2::NatGateway');
    },
  );

  it('offers Spot to the cluster when all else is there, and by default not at all', () => {
    expect(withFargate.resources('AWS::ECS::ClusterCapacityProviderAssociations')).toEqual([]);
    const [offer, ...more] = withSpot.resources('AWS::ECS::ClusterCapacityProviderAssociations');
    expect(more).toEqual([]);
    const [cluster] = withSpot.resources('AWS::ECS::Cluster');
    const [task] = withSpot.resources('AWS::ECS::TaskDefinition');
    expect(offer?.properties).toEqual({
      Cluster: { Ref: cluster?.logicalId },
      CapacityProviders: ['FARGATE', 'FARGATE_SPOT'],
      DefaultCapacityProviderStrategy: [],
    });
    expect(offer?.template['DependsOn']).toContain(task?.logicalId);
    expect(schedulerOf(withSpot)).toMatchObject({ OUTRIDER_FARGATE_SPOT: 'true' });
    expect(schedulerOf(withFargate)).not.toHaveProperty('OUTRIDER_FARGATE_SPOT');
  });

  it.each([
    [true, 1],
    ['true', 1],
    ['on', 1],
    [false, 0],
    ['false', 0],
    ['off', 0],
  ])('is one where the context says fargate=%s', (fargate, clusters) => {
    expect(synthesized({ fargate }).resources('AWS::ECS::Cluster')).toHaveLength(clusters);
  });

  it('is refused where the context says something else', () => {
    expect(() => synthesized({ fargate: 'maybe' })).toThrow('context "fargate": must be on, off or spot');
  });
});

describe('the end of a worker', () => {
  it.each([
    ['with Fargate', withFargate],
    ['without', without],
  ])('is told to one function by all of Lambda: %s', (_, system) => {
    const ended = system
      .resources('AWS::Lambda::Function')
      .filter(({ properties }) => properties['Description'] === 'Outrider: records why a worker is gone');
    expect(ended).toHaveLength(1);
    const arn = { 'Fn::GetAtt': [ended[0]?.logicalId, 'Arn'] };
    const told = system
      .resources('AWS::Lambda::EventInvokeConfig')
      .filter(({ properties }) => properties['DestinationConfig'] !== undefined);
    expect(told.map(({ properties }) => properties['DestinationConfig'])).toEqual(
      Array.from({ length: 4 }, () => ({ OnFailure: { Destination: arn } })),
    );
    expect(told.every(({ properties }) => properties['MaximumRetryAttempts'] === 0)).toBe(true);
    const calls = system
      .resources('AWS::IAM::Policy')
      .flatMap(({ properties }) => (properties['PolicyDocument'] as { Statement: unknown[] }).Statement)
      .filter((statement) => JSON.stringify(statement).includes(JSON.stringify(arn)));
    expect(calls).toEqual([{ Action: 'lambda:InvokeFunction', Effect: 'Allow', Resource: arn }]);
  });

  it('is told by the tasks of the one cluster alone, when they have stopped', () => {
    const [cluster] = withFargate.resources('AWS::ECS::Cluster');
    const rules = withFargate
      .resources('AWS::Events::Rule')
      .filter(({ properties }) => JSON.stringify(properties).includes('aws.ecs'));
    expect(rules.map(({ properties }) => properties['EventPattern'])).toEqual([
      {
        source: ['aws.ecs'],
        'detail-type': ['ECS Task State Change'],
        detail: { clusterArn: [{ 'Fn::GetAtt': [cluster?.logicalId, 'Arn'] }], lastStatus: ['STOPPED'] },
      },
    ]);
  });

  it('may be recorded in attempts, and nowhere else', () => {
    const policy = withFargate
      .resources('AWS::IAM::Policy')
      .find(({ properties }) => JSON.stringify(properties['Roles']).includes('EndedWorkerRole'));
    const { Statement } = policy?.properties['PolicyDocument'] as {
      Statement: { Action: unknown; Condition?: object }[];
    };
    const onTable = Statement.filter(({ Action }) => JSON.stringify(Action).includes('dynamodb:'));
    expect(onTable.map(({ Action, Condition }) => [Action, Condition])).toEqual([
      [
        ['dynamodb:BatchGetItem', 'dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'],
        {
          'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['J#*'] },
          Null: { 'dynamodb:LeadingKeys': 'false' },
        },
      ],
      [
        'dynamodb:GetItem',
        {
          'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['JOB#*'] },
          Null: { 'dynamodb:LeadingKeys': 'false' },
        },
      ],
    ]);
  });
});
