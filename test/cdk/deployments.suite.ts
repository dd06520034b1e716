import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { App } from 'aws-cdk-lib';
import { ConfigError } from '../../cdk/context.ts';
import { addSystem } from '../../cdk/system.ts';
import { cdkContext, synthesized, type SynthesizedSystem } from './synthesized.ts';

/** Every resource of every type. */
const everything = (system: SynthesizedSystem) =>
  [...system.stacks].flatMap(([stack, template]) => {
    const resources = template.toJSON()['Resources'] as Record<string, { Type: string; Properties?: object }>;
    return Object.entries(resources).map(([logicalId, { Type: type, Properties: properties = {} }]) => ({
      stack,
      logicalId,
      type,
      properties,
    }));
  });

/** Properties that name something within its own resource, and not in the account. */
const inner = new Set(['StageName', 'AttributeName', 'IndexName', 'PolicyName', 'TagName', 'ServiceName']);

/** Names that a resource takes in its account and region, as the template writes them. */
function physicalNames(system: SynthesizedSystem): string[] {
  return everything(system).flatMap(({ type, properties }) =>
    Object.entries(properties).flatMap(([name, value]) => {
      const isName = /Name$|^Family$/.test(name) && !inner.has(name);
      const isOwn =
        !/^AWS::(ApiGateway::(Model|Method|RequestValidator|Resource)|EC2::(Subnet|VPC)\w*)$/.test(type);
      // A name that follows from a resource of its own stack is as much its own as that.
      return isName && isOwn && typeof value === 'string' ? [`${type} ${value}`] : [];
    }),
  );
}

/** Names of exports, which are one list for an account and region. */
const exportsOf = (system: SynthesizedSystem): string[] =>
  [...system.stacks.values()].flatMap((template) =>
    Object.values(template.toJSON()['Outputs'] as Record<string, { Export?: { Name: unknown } }>).flatMap(
      ({ Export: exported }) => (exported === undefined ? [] : [JSON.stringify(exported.Name)]),
    ),
  );

const importsOf = (system: SynthesizedSystem): string[] =>
  [...system.stacks.values()].flatMap((template) =>
    [...JSON.stringify(template.toJSON()).matchAll(/"Fn::ImportValue":("[^"]+")/g)].map(
      ([, name = '']) => name,
    ),
  );

const shared = (a: readonly string[], b: readonly string[]): string[] => a.filter((each) => b.includes(each));

describe('deployments in one account and region', () => {
  const [plain, dev, test] = [synthesized(), synthesized({ name: 'dev' }), synthesized({ name: 'dev-2' })];

  it('have no stack, physical name or export in common', () => {
    for (const [one, other] of [
      [plain, dev],
      [plain, test],
      [dev, test],
    ] as const) {
      expect(shared([...one.stacks.keys()], [...other.stacks.keys()])).toEqual([]);
      expect(physicalNames(one).length).toBeGreaterThan(2);
      expect(shared(physicalNames(one), physicalNames(other))).toEqual([]);
      expect(exportsOf(one).length).toBeGreaterThan(10);
      expect(shared(exportsOf(one), exportsOf(other))).toEqual([]);
    }
  });

  it('import from themselves alone', () => {
    for (const system of [plain, dev, test]) {
      const exported = exportsOf(system);
      expect(importsOf(system).length).toBeGreaterThan(10);
      expect(importsOf(system).filter((name) => !exported.includes(name))).toEqual([]);
    }
  });

  it('are the same but for names', () => {
    const types = (system: SynthesizedSystem) => everything(system).map(({ type }) => type);
    expect(types(dev)).toEqual(types(plain));
  });

  it('change no setting of the whole account', () => {
    const accountWide =
      /^AWS::(ApiGateway::Account|ECS::ClusterCapacityProviderAssociations|Logs::(ResourcePolicy|AccountPolicy)|XRay::(Group|ResourcePolicy)|IAM::ServiceLinkedRole|SSM::\w+|S3::AccountPublicAccessBlock|Lambda::AccountPolicy)$/;
    expect(everything(dev).filter(({ type }) => accountWide.test(type))).toEqual([]);
  });

  it('pass all checks under a name', () => {
    const app = new App({ context: { ...cdkContext, name: 'dev' } });
    addSystem(app);
    expect(app.synth().stacks.map(({ stackName }) => stackName)).toEqual([
      'Outrider-dev-Storage',
      'Outrider-dev-Compute',
      'Outrider-dev-Coordinator',
      'Outrider-dev-Api',
    ]);
  });
});

describe('a given network', () => {
  const subnets = 'subnet-0123456789abcdef0,subnet-0fedcba9876543210';
  const environmentOf = (system: SynthesizedSystem) =>
    JSON.stringify(
      system.resources('AWS::Lambda::Function').find(({ logicalId }) => logicalId.startsWith('schedule'))
        ?.properties['Environment'],
    );

  it('takes the place of one of the deployment\u2019s own', () => {
    const system = synthesized({ subnets, securityGroups: 'sg-0123456789abcdef0' });
    expect(everything(system).filter(({ type }) => type.startsWith('AWS::EC2::'))).toEqual([]);
    expect(environmentOf(system)).toContain(`"OUTRIDER_SUBNETS":"${subnets}"`);
    expect(environmentOf(system)).toContain('"OUTRIDER_SECURITY_GROUPS":"sg-0123456789abcdef0"');
    expect(environmentOf(system)).toContain('"OUTRIDER_PUBLIC_IPS":"false"');
    expect(environmentOf(system)).not.toContain('OUTRIDER_SUBNET_ZONES');
  });

  it('has tasks sent to zones where those of its subnets are told', () => {
    const system = synthesized({
      ...{ subnets, securityGroups: 'sg-0123456789abcdef0' },
      subnetZones: 'us-east-1a,us-east-1b',
    });
    expect(environmentOf(system)).toContain('"OUTRIDER_SUBNET_ZONES":"us-east-1a,us-east-1b"');
    // Names are all that anybody knows.
    expect(JSON.stringify(everything(system))).not.toContain('OUTRIDER_ZONE_IDS');
  });

  it('has tasks and the scheduler know zones by their ids where those are told, too', () => {
    const system = synthesized({
      ...{ subnets, securityGroups: 'sg-0123456789abcdef0' },
      subnetZones: 'us-east-1a=use1-az6,us-east-1b=use1-az4',
    });
    expect(environmentOf(system)).toContain('"OUTRIDER_SUBNET_ZONES":"use1-az6,use1-az4"');
    expect(JSON.stringify(system.resources('AWS::ECS::TaskDefinition'))).toContain(
      '{"Name":"OUTRIDER_ZONE_IDS","Value":"us-east-1a=use1-az6,us-east-1b=use1-az4"}',
    );
  });

  it('names a zone once to tasks where several of its subnets are in it', () => {
    const system = synthesized({
      ...{ subnets, securityGroups: 'sg-0123456789abcdef0' },
      subnetZones: 'us-east-1a=use1-az6,us-east-1a=use1-az6',
    });
    expect(environmentOf(system)).toContain('"OUTRIDER_SUBNET_ZONES":"use1-az6,use1-az6"');
    expect(JSON.stringify(system.resources('AWS::ECS::TaskDefinition'))).toContain(
      '{"Name":"OUTRIDER_ZONE_IDS","Value":"us-east-1a=use1-az6"}',
    );
  });

  it('gets a security group where only its VPC is named, and public addresses where that is said', () => {
    const system = synthesized({ subnets, vpcId: 'vpc-0123456789abcdef0', publicIps: 'true' });
    expect(system.resources('AWS::EC2::SecurityGroup').map(({ properties }) => properties['VpcId'])).toEqual([
      'vpc-0123456789abcdef0',
    ]);
    expect(system.resources('AWS::EC2::VPC')).toEqual([]);
    expect(environmentOf(system)).not.toContain('OUTRIDER_PUBLIC_IPS');
  });
});

describe('a network of its own', () => {
  it('is in the zones that are told by their ids, as those are that have S3 Express', () => {
    const system = synthesized({ taskZones: 'use1-az4,use1-az6,use1-az5' });
    const subnets = system.resources('AWS::EC2::Subnet');
    expect(
      subnets.map(({ properties }) => [properties['AvailabilityZoneId'], properties['AvailabilityZone']]),
    ).toEqual([
      ['use1-az4', undefined],
      ['use1-az6', undefined],
      ['use1-az5', undefined],
    ]);
    // Its tasks turn the names that ECS tells them into ids, by what CloudFormation knows of both.
    const [task] = system.resources('AWS::ECS::TaskDefinition');
    const [first] = subnets;
    expect(JSON.stringify(task?.properties['ContainerDefinitions'])).toContain(
      `{"Name":"OUTRIDER_ZONE_IDS","Value":{"Fn::Join":["",[{"Fn::GetAtt":["${first?.logicalId ?? ''}","AvailabilityZone"]},"=",{"Fn::GetAtt":["${first?.logicalId ?? ''}","AvailabilityZoneId"]},",",`,
    );
  });

  it('is in the first zones of the region where none are told', () => {
    const zones = synthesized()
      .resources('AWS::EC2::Subnet')
      .map(({ properties }) => [properties['AvailabilityZoneId'], properties['AvailabilityZone']]);
    expect(zones).toEqual([
      [undefined, { 'Fn::Select': [0, { 'Fn::GetAZs': '' }] }],
      [undefined, { 'Fn::Select': [1, { 'Fn::GetAZs': '' }] }],
    ]);
  });
});

describe('wrong context', () => {
  it.each([
    [{ intermediateDays: 'x' }, 'context "intermediateDays": must be a whole number, not "x"'],
    [{ intermediateDays: '' }, 'context "intermediateDays": must be a whole number, not ""'],
    [{ intermediateDays: '11.5' }, 'context "intermediateDays": must be a whole number, not "11.5"'],
    [{ intermediateDays: '366' }, 'context "intermediateDays": must be at most 365, not "366"'],
    [
      { intermediateDays: 3 },
      'context "intermediateDays": must be at least 10: a job may live up to 9 days, and needs it until then, not 3',
    ],
    [
      { logRetentionDays: '11' },
      'context "logRetentionDays": must be one of the lengths that CloudWatch has: 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653, 9999, not "11"',
    ],
    [{ logRetentionDays: 'x' }, 'context "logRetentionDays": must be a whole number, not "x"'],
    [{ tenantIsolation: 'yes' }, 'context "tenantIsolation": must be true or false, not "yes"'],
    [
      { inputBuckets: 's3://a' },
      'context "inputBuckets": must be the name of a bucket, without "s3://" and without a key, not "s3://a"',
    ],
    [
      { name: 'Dev' },
      'context "name": must be letters a-z, digits and single hyphens, and begin with a letter, such as "dev", not "Dev"',
    ],
    [{ name: 'a'.repeat(21) }, `context "name": must be at most 20 characters, not "${'a'.repeat(21)}"`],
    [{ inputBucket: 'a' }, 'context "inputBucket": there is no such setting; "inputBuckets" perhaps'],
    [
      { intermediate_days: '20' },
      'context "intermediate_days": there is no such setting; "intermediateDays" perhaps',
    ],
    [{ vpcId: 'vpc-0123456789abcdef0' }, 'context "vpcId": needs "subnets", in which the tasks are to run'],
    [
      { taskZones: 'us-east-1a' },
      'context "taskZones": must be ids of zones such as use1-az4, with commas between them, not "us-east-1a"',
    ],
    [
      { taskZones: 'use1-az4,use1-az4' },
      'context "taskZones": must name each zone once, not "use1-az4,use1-az4"',
    ],
    [
      {
        ...{ subnets: 'subnet-0123456789abcdef0', securityGroups: 'sg-0123456789abcdef0' },
        taskZones: 'use1-az4',
      },
      'context "taskZones": is for a network of the deployment\u2019s own; the zones of "subnets" are told by "subnetZones"',
    ],
    [{ subnetZones: 'us-east-1a' }, 'context "subnetZones": needs "subnets", in which the tasks are to run'],
    [
      {
        ...{ subnets: 'subnet-0123456789abcdef0,subnet-0fedcba9876543210', subnetZones: 'us-east-1a' },
        securityGroups: 'sg-0123456789abcdef0',
      },
      'context "subnetZones": must name the zone of each of the 2 "subnets", in their order, not 1 zones',
    ],
    [
      {
        ...{ subnets: 'subnet-0123456789abcdef0', subnetZones: 'use1_az1' },
        securityGroups: 'sg-0123456789abcdef0',
      },
      'context "subnetZones": must be names of zones such as us-east-1a, or names with ids such as us-east-1a=use1-az4, with commas between them, not "use1_az1"',
    ],
    ...(
      [
        [
          'use1-az4=us-east-1a,us-east-1b=use1-az6',
          'must be names of zones such as us-east-1a, or names with ids such as us-east-1a=use1-az4, with commas between them, not "use1-az4=us-east-1a,us-east-1b=use1-az6"',
        ],
        [
          'us-east-1a=use1-az4,us-east-1b',
          'must tell the ids of all zones or of none, and that of us-east-1b is missing',
        ],
        [
          'us-east-1a,us-east-1b=use1-az4',
          'must tell the ids of all zones or of none, and that of us-east-1a is missing',
        ],
        [
          'us-east-1a=use1-az4,us-east-1a=use1-az6',
          'must tell one id of each zone, not both us-east-1a=use1-az4 and us-east-1a=use1-az6',
        ],
        [
          'us-east-1a=use1-az4,us-east-1b=use1-az4',
          'must tell one id of each zone, not both us-east-1a=use1-az4 and us-east-1b=use1-az4',
        ],
      ] as const
    ).map(([subnetZones, problem]): [Record<string, string>, string] => [
      {
        subnets: 'subnet-0123456789abcdef0,subnet-0fedcba9876543210',
        ...{ subnetZones, securityGroups: 'sg-0123456789abcdef0' },
      },
      `context "subnetZones": ${problem}`,
    ]),
    [
      { subnets: 'subnet-0123456789abcdef0' },
      'context "subnets": needs "securityGroups", or "vpcId" for a security group to be made there',
    ],
    [
      { subnets: 'mine', securityGroups: 'sg-0123456789abcdef0' },
      'context "subnets": must be ids such as subnet-0123456789abcdef0, with commas between them, not "mine"',
    ],
  ])('%j is refused in one line that names the key and what would be right', (context, message) => {
    expect(() => synthesized(context)).toThrow(new ConfigError(message));
  });

  it('is told without a stack trace', () => {
    const app = fileURLToPath(new URL('../../cdk/app.ts', import.meta.url));
    const context = JSON.stringify({ intermediateDays: 'x' });
    const { status, stderr, stdout } = spawnSync(process.execPath, [app], {
      env: { ...process.env, CDK_CONTEXT_JSON: context, CDK_OUTDIR: '/nonexistent', NODE_OPTIONS: '' },
      encoding: 'utf8',
    });
    expect(stderr).toBe('outrider: context "intermediateDays": must be a whole number, not "x"\n');
    expect(stdout).toBe('');
    expect(status).toBe(1);
  });

  it('of a key that nobody reads names those that there are', () => {
    expect(() => synthesized({ colour: 'red' })).toThrow(
      /^context "colour": there is no such setting; one of inputBuckets, outputBuckets, /,
    );
  });
});
