import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { synthesized } from './synthesized.ts';

const policySchema = z.looseObject({
  PolicyDocument: z.object({
    Statement: z.array(
      z.looseObject({
        Effect: z.string(),
        Action: z.union([z.array(z.string()), z.string().transform((action) => [action])]),
        Resource: z
          .union([z.array(z.unknown()), z.unknown().transform((resource) => [resource])])
          .default([]),
        NotResource: z.unknown().optional(),
        Condition: z.unknown().optional(),
      }),
    ),
  }),
});
const system = synthesized();
type Statement = z.output<typeof policySchema>['PolicyDocument']['Statement'][number];

/** Statements of the policy whose logical id begins with `prefix`. */
function statements(prefix: string, from = system): readonly Statement[] {
  return from
    .resources('AWS::IAM::Policy')
    .filter(({ logicalId }) => logicalId.startsWith(prefix))
    .flatMap(({ properties }) => policySchema.parse(properties).PolicyDocument.Statement);
}

const actions = (found: readonly Statement[]): string[] => found.flatMap(({ Action }) => Action);
const resourcesOf = (found: readonly Statement[], action: string): string =>
  JSON.stringify(found.filter(({ Action }) => Action.includes(action)).flatMap(({ Resource }) => Resource));

const session = 's3express:CreateSession';

/** What each SDK command asks for, where its name alone does not tell. */
const actionsOfCommands: Readonly<Record<string, string>> = {
  AbortMultipartUploadCommand: 's3:AbortMultipartUpload',
  BatchGetCommand: 'dynamodb:BatchGetItem',
  CompleteMultipartUploadCommand: 's3:PutObject',
  CopyObjectCommand: 's3:PutObject',
  CreateMultipartUploadCommand: 's3:PutObject',
  CreateSessionCommand: session,
  // Jobs on the list of those that want a scheduler, and in the ledger of slots: nothing else is ever removed.
  DeleteCommand: 'roster:DeleteItem',
  DeleteObjectsCommand: 's3:DeleteObject',
  DescribeExecutionCommand: 'states:DescribeExecution',
  DescribeTasksCommand: 'ecs:DescribeTasks',
  GetCommand: 'dynamodb:GetItem',
  GetObjectCommand: 's3:GetObject',
  HeadObjectCommand: 's3:GetObject',
  InvokeCommand: 'lambda:InvokeFunction',
  ListMultipartUploadsCommand: 's3:ListBucketMultipartUploads',
  ListObjectsV2Command: 's3:ListBucket',
  PutCommand: 'dynamodb:PutItem',
  PutObjectCommand: 's3:PutObject',
  QueryCommand: 'dynamodb:Query',
  RunTaskCommand: 'ecs:RunTask',
  // By a policy of its own, see below.
  SendTaskFailureCommand: 'answers:SendTaskFailure',
  SendTaskHeartbeatCommand: 'answers:SendTaskHeartbeat',
  SendTaskSuccessCommand: 'answers:SendTaskSuccess',
  StartExecutionCommand: 'states:StartExecution',
  StopExecutionCommand: 'states:StopExecution',
  StopTaskCommand: 'ecs:StopTask',
  UpdateCommand: 'dynamodb:UpdateItem',
  UploadPartCommand: 's3:PutObject',
  FilterLogEventsCommand: 'logs:FilterLogEvents', // Of whoever reads logs, which no function does.
};

const adaptersDir = new URL('../../src/adapters/aws/', import.meta.url);

/** What attempts do of all that the adapters can: they claim, report and commit, read, write, and take back their own. */
const workerActions = [
  'dynamodb:GetItem',
  'dynamodb:PutItem',
  'dynamodb:UpdateItem',
  's3:AbortMultipartUpload',
  's3:DeleteObject',
  's3:GetObject',
  's3:PutObject',
];

/** Whoever ends a job gives its slots back, reads zones, and finds and stops tasks that hang. */
const endingActions = ['dynamodb:DeleteItem', 'ecs:DescribeTasks', 'ecs:StopTask', session];

/** The scheduler reads plans and writes manifests, and removes those that it wrote after its job's end. */
const schedulerObjectActions = [
  's3:AbortMultipartUpload',
  's3:DeleteObject',
  's3:GetObject',
  's3:ListBucket',
  's3:ListBucketMultipartUploads',
  's3:PutObject',
];

/** Actions that the adapters' calls to some services need. */
function neededActions(services: readonly string[]): string[] {
  const sources = readdirSync(adaptersDir).map((name) => readFileSync(new URL(name, adaptersDir), 'utf8'));
  const commands = sources.flatMap((source) => source.match(/\b[A-Z]\w+Command\b/g) ?? []);
  const needed = [...new Set(commands)].map((command) => actionsOfCommands[command] ?? `unknown:${command}`);
  const isWanted = (action: string): boolean => [...services, 'unknown'].includes(action.split(':')[0] ?? '');
  return [...new Set(needed.filter(isWanted))].toSorted();
}

describe('grants', () => {
  it.each([
    [
      'schedulerole',
      ['dynamodb', 'lambda', 'ecs'],
      [
        ...['dynamodb:DeleteItem', 'iam:PassRole', ...schedulerObjectActions, session],
        ...['sts:AssumeRole', 'sts:TagSession'],
      ],
    ],
    ['finishrole', ['dynamodb', 's3'], [...endingActions, 'lambda:InvokeFunction']],
    ['ForecastRole', [], ['s3:GetObject', 's3:ListBucket', 's3:PutObject']],
    ['failrole', ['dynamodb', 's3'], endingActions],
    ['settlerole', ['dynamodb', 's3'], endingActions],
    ['sweeprole', ['dynamodb', 's3'], [...endingActions, 'states:DescribeExecution']],
    ['WorkerRole', [], ['dynamodb:GetItem', 'lambda:InvokeFunction']],
    [
      'EndedWorkerRole',
      [],
      ['dynamodb:BatchGetItem', 'dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'],
    ],
    ['TaskTaskRole', [], ['dynamodb:GetItem']],
    ['JobAccessRole', [], [...workerActions, session]],
    ['HandlerRole', ['dynamodb', 'states'], ['s3:GetObject', 's3:ListBucket']],
  ])('let %s do what the adapters do with %s, and no more', (prefix, services, besides) => {
    const granted = new Set(actions(statements(prefix)).filter((action) => !action.startsWith('logs:')));
    expect([...granted].toSorted()).toEqual([...neededActions(services), ...besides].toSorted());
  });

  it('let the scheduler alone answer the tasks of the one state machine', () => {
    const found = system
      .resources('AWS::IAM::Policy')
      .filter(({ properties }) => JSON.stringify(properties).includes('states:SendTask'));
    expect(found).toHaveLength(1);
    expect(found[0]?.properties).toMatchObject({
      PolicyDocument: {
        Statement: [
          {
            Effect: 'Allow',
            Action: ['states:SendTaskFailure', 'states:SendTaskHeartbeat', 'states:SendTaskSuccess'],
            Resource: { Ref: expect.stringMatching(/^Jobs/) as unknown },
          },
        ],
      },
      Roles: [{ Ref: expect.stringMatching(/^schedulerole/) as unknown }],
    });
  });

  it('let jobs be taken off the roster by the scheduler, and out of the ledger by who ends them, and no more', () => {
    const removing = system
      .resources('AWS::IAM::Policy')
      .flatMap(({ logicalId }) => statements(logicalId).map((statement) => ({ logicalId, statement })))
      .filter(({ statement }) => statement.Action.includes('dynamodb:DeleteItem'));
    const found = removing
      .toSorted((a, b) => (a.logicalId < b.logicalId ? -1 : 1))
      .map(({ logicalId, statement }) => [logicalId.replace(/role.*/, ''), statement]);
    const inPartitions = (...keys: string[]): unknown =>
      expect.objectContaining({
        Action: ['dynamodb:DeleteItem'],
        Condition: {
          'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': keys },
          Null: { 'dynamodb:LeadingKeys': 'false' },
        },
      });
    expect(found).toEqual([
      ['fail', inPartitions('LEDGER')],
      ['finish', inPartitions('LEDGER')],
      ['schedule', inPartitions('ROSTER', 'LEDGER')],
      ['settle', inPartitions('LEDGER')],
      ['sweep', inPartitions('LEDGER')],
    ]);
  });

  it('name every resource, but where AWS has none to name', () => {
    const unnamed = system.resources('AWS::IAM::Policy').flatMap(({ logicalId, properties }) =>
      policySchema
        .parse(properties)
        .PolicyDocument.Statement.filter(({ Resource }) => Resource.includes('*'))
        .map(
          ({ Action }) =>
            `${logicalId.slice(0, -8)}: ${[...new Set(Action.map((action) => action.replace(/:.*/, '')))].join(' ')}`,
        ),
    );
    expect(unnamed).toEqual([
      // A token of the registry, delivery of logs, and traces: AWS names no resource for them.
      'TaskExecutionRoleDefaultPolicy: ecr',
      'JobsRoleDefaultPolicy: logs xray',
    ]);
  });

  it('allow no whole service', () => {
    const all = system
      .resources('AWS::IAM::Policy')
      .flatMap(({ properties }) => actions(policySchema.parse(properties).PolicyDocument.Statement));
    expect(all.filter((action) => action.includes('*'))).toEqual([]);
  });

  it.each([
    // Lambda calls the destination of failures with the rights of the function that failed.
    ['WorkerRole', [{ Effect: 'Allow', Action: ['lambda:InvokeFunction'] }]],
    ['TaskTaskRole', []],
  ])('let %s by itself read sessions, tell of its own failures, and nothing else', (prefix, besides) => {
    const found = statements(prefix).filter(({ Action }) =>
      Action.some((action) => !action.startsWith('logs:')),
    );
    const called = resourcesOf(found, 'lambda:InvokeFunction');
    if (besides.length > 0) expect(called).toMatch(/^\[\{"Fn::GetAtt":\["EndedWorker\w{8}","Arn"\]\}\]$/);
    expect(found).toMatchObject([
      {
        Effect: 'Allow',
        Action: ['dynamodb:GetItem'],
        Condition: {
          'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['ACCESS#*'] },
          Null: { 'dynamodb:LeadingKeys': 'false' },
        },
      },
      ...besides,
    ]);
  });

  describe('of a session of a job', () => {
    const more = synthesized({ inputBuckets: 'texts', outputBuckets: 'results' });
    /** ARNs with the data bucket by that name, and buckets of others by theirs. */
    const plain = (resource: unknown): string =>
      JSON.stringify(resource)
        .replaceAll(
          /\{"Fn::Join":\["",\[(.*?)\]\]\}/g,
          (_, parts: string) => `"${parts.replaceAll(/^"|"$|","|",|,"/g, '')}"`,
        )
        .replaceAll(/\{"Fn::ImportValue":"OutriderStorage:[^"]*Data[^"]*"\}/g, 'data')
        .replaceAll(/arn:\{"Ref":"AWS::Partition"\}:s3:::/g, '');
    const found = statements('JobAccessRole', more).map(
      ({ Effect, Action, Resource, NotResource, Condition }) => ({
        Effect,
        Action,
        ...(NotResource === undefined ? { in: plain(Resource) } : { notIn: plain(NotResource) }),
        ...(Condition === undefined ? {} : { Condition }),
      }),
    );
    const job = '${aws:PrincipalTag/outrider-job}';

    it('reach records of its own tasks only, told by a key that no other id begins with', () => {
      expect(
        found.filter(({ Action }) => Action.some((action) => action.startsWith('dynamodb:'))),
      ).toMatchObject([
        {
          Effect: 'Allow',
          Action: ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'],
          Condition: {
            'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [`J#${job}#*`] },
            Null: { 'dynamodb:LeadingKeys': 'false' },
          },
        },
      ]);
    });

    it('reach data of its own job only, and of other objects what the deployment names', () => {
      expect(found.filter(({ Action }) => Action.some((action) => action.startsWith('s3:')))).toEqual([
        { Effect: 'Allow', Action: ['s3:GetObject'], in: `["data/jobs/${job}/*"]` },
        {
          Effect: 'Allow',
          Action: ['s3:AbortMultipartUpload', 's3:DeleteObject', 's3:PutObject'],
          in: `["data/jobs/${job}/data/*"]`,
        },
        {
          Effect: 'Allow',
          Action: ['s3:AbortMultipartUpload', 's3:GetObject', 's3:PutObject'],
          notIn: '["data/jobs/*","data/forecasts/*"]',
        },
        { Effect: 'Deny', Action: ['s3:GetObject'], notIn: '["data/*","texts/*"]' },
        {
          Effect: 'Deny',
          Action: ['s3:AbortMultipartUpload', 's3:PutObject'],
          notIn: '["data/*","results/*"]',
        },
      ]);
    });

    it('are made by the scheduler alone, and for a job that is named', () => {
      const [role] = more
        .resources('AWS::IAM::Role')
        .filter(({ logicalId }) => logicalId.startsWith('JobAccessRole'));
      expect(role?.properties['AssumeRolePolicyDocument']).toMatchObject({
        Statement: [
          {
            Effect: 'Allow',
            Action: ['sts:AssumeRole', 'sts:TagSession'],
            Principal: { AWS: { 'Fn::GetAtt': [expect.stringMatching(/^schedulerole/), 'Arn'] } },
            Condition: {
              StringLike: { 'aws:RequestTag/outrider-job': '?*' },
              'ForAllValues:StringEquals': { 'aws:TagKeys': ['outrider-job'] },
            },
          },
        ],
      });
      const makers = more
        .resources('AWS::IAM::Policy')
        .filter(({ properties }) => JSON.stringify(properties).includes('sts:'))
        .map(({ logicalId }) => logicalId.replace(/DefaultPolicy.*/, ''));
      expect(makers).toEqual([expect.stringMatching(/^schedulerole/)]);
    });
  });

  it('let the scheduler invoke the workers only, and run the one task in the one cluster only', () => {
    const found = statements('schedulerole');
    const invoked = resourcesOf(found, 'lambda:InvokeFunction');
    expect(
      invoked.match(/OutriderCompute:ExportsOutputFnGetAttWorker(small|medium|large|xlarge)/g),
    ).toHaveLength(4);
    expect(invoked.match(/ImportValue/g)).toHaveLength(4);
    const run = found.find(({ Action }) => Action.includes('ecs:RunTask'));
    expect(JSON.stringify(run?.Resource)).toContain(':task-definition/outrider-worker:*');
    expect(JSON.stringify(run?.Condition)).toContain('"ecs:cluster":{"Fn::ImportValue":"OutriderCompute:');
    const pass = found.find(({ Action }) => Action.includes('iam:PassRole'));
    expect(pass?.Resource).toHaveLength(2);
    expect(pass?.Condition).toEqual({ StringEquals: { 'iam:PassedToService': 'ecs-tasks.amazonaws.com' } });
  });

  it.each([
    'planrole',
    'finishrole',
    'failrole',
    'HandlerRole',
    'WorkerRole',
    'EndedWorkerRole',
    'TaskTaskRole',
    'JobAccessRole',
    'ForecastRole',
  ])('let %s launch nothing', (prefix) => {
    const found = actions(statements(prefix));
    const called = resourcesOf(statements(prefix), 'lambda:InvokeFunction');
    expect(called).not.toMatch(/Worker(small|medium|large|xlarge)/);
    // Finish asks for a forecast, and nothing else.
    if (prefix === 'finishrole') expect(called).toMatch(/^\[\{"Fn::GetAtt":\["Forecast\w{8}","Arn"\]\}\]$/);
    else if (prefix !== 'WorkerRole') expect(called).toBe('[]');
    expect(found).not.toContain('ecs:RunTask');
    expect(found).not.toContain('iam:PassRole');
  });

  it('let forecasts be computed from what was learned, and from nothing else', () => {
    const found = statements(
      'ForecastRole',
      synthesized({ inputBuckets: 'texts', outputBuckets: 'results' }),
    );
    for (const action of ['s3:GetObject', 's3:PutObject']) {
      const reached = resourcesOf(found, action);
      expect(reached.match(/"\/[^"]*"/g)).toEqual(['"/forecasts/*"']);
      expect(reached).not.toMatch(/texts|results/);
    }
  });

  it('let the API read what was learned of jobs, and reach no other object', () => {
    const found = statements('HandlerRole', synthesized({ inputBuckets: 'texts', outputBuckets: 'results' }));
    expect(actions(found).filter((action) => action.startsWith('s3:'))).toEqual([
      's3:ListBucket',
      's3:GetObject',
    ]);
    const reached = resourcesOf(found, 's3:GetObject');
    expect(reached.match(/"\/[^"]*"/g)).toEqual(['"/forecasts/*"']);
    expect(reached).not.toMatch(/texts|results/);
  });

  it('let the API start, describe and stop executions of the one state machine', () => {
    const found = statements('HandlerRole');
    expect(resourcesOf(found, 'states:StartExecution')).toMatch(
      /^\[\{"Fn::ImportValue":"OutriderCoordinator:[^"]*Jobs/,
    );
    expect(resourcesOf(found, 'states:StopExecution')).toContain(':execution:');
    expect(resourcesOf(found, 'states:DescribeExecution')).toContain(':execution:');
  });

  it('reach no bucket but the own, unless the deployment names more', () => {
    for (const prefix of ['JobAccessRole', 'planrole', 'finishrole', 'failrole'])
      expect(JSON.stringify(statements(prefix))).not.toContain(':s3:::');
  });

  it.each(['planrole', 'schedulerole'])('let %s write and remove plans and manifests only', (prefix) => {
    const found = statements(prefix, synthesized({ outputBuckets: 'results' }));
    for (const action of ['s3:PutObject', 's3:DeleteObject']) {
      const changed = resourcesOf(found, action);
      expect(changed).toContain('"/jobs/*"');
      expect(changed).not.toContain('"/forecasts/*"');
      expect(changed).not.toContain('results');
      expect(changed).not.toContain('"/*"');
    }
  });

  it('refuse a bucket that is no name of a bucket, and say so', () => {
    expect(() => synthesized({ inputBuckets: ['s3://texts/'] })).toThrow(
      /context "inputBuckets": .*name of a bucket/,
    );
  });
});
