import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { synthesized } from './synthesized.ts';

const policySchema = z.looseObject({
  PolicyDocument: z.object({
    Statement: z.array(
      z.looseObject({
        Effect: z.string(),
        Action: z.union([z.array(z.string()), z.string().transform((action) => [action])]),
        Resource: z.union([z.array(z.unknown()), z.unknown().transform((resource) => [resource])]),
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

/** What each SDK command asks for, where its name alone does not tell. */
const actionsOfCommands: Readonly<Record<string, string>> = {
  AbortMultipartUploadCommand: 's3:AbortMultipartUpload',
  BatchGetCommand: 'dynamodb:BatchGetItem',
  CompleteMultipartUploadCommand: 's3:PutObject',
  CreateMultipartUploadCommand: 's3:PutObject',
  DeleteObjectsCommand: 's3:DeleteObject',
  DescribeExecutionCommand: 'states:DescribeExecution',
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
  StartExecutionCommand: 'states:StartExecution',
  StopExecutionCommand: 'states:StopExecution',
  StopTaskCommand: 'ecs:StopTask',
  UpdateCommand: 'dynamodb:UpdateItem',
  UploadPartCommand: 's3:PutObject',
  // The right of whoever reads logs, which no function does.
  FilterLogEventsCommand: 'logs:FilterLogEvents',
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
  's3:ListBucket',
  's3:PutObject',
];

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
    ['schedulerole', ['dynamodb', 'lambda', 'ecs'], ['iam:PassRole', ...schedulerObjectActions]],
    ['finishrole', ['dynamodb', 's3'], []],
    ['failrole', ['dynamodb', 's3'], []],
    ['settlerole', ['dynamodb', 's3'], []],
    ['sweeprole', ['dynamodb', 's3'], ['states:DescribeExecution']],
    ['WorkerRole', [], workerActions],
    ['TaskTaskRole', [], workerActions],
    ['HandlerRole', ['dynamodb', 'states'], []],
  ])('let %s do what the adapters do with %s, and no more', (prefix, services, besides) => {
    const granted = new Set(actions(statements(prefix)).filter((action) => !action.startsWith('logs:')));
    expect([...granted].toSorted()).toEqual([...neededActions(services), ...besides].toSorted());
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

  it('let workers reach data and records, and start nothing', () => {
    for (const prefix of ['WorkerRole', 'TaskTaskRole']) {
      const services = new Set(actions(statements(prefix)).map((action) => action.split(':')[0]));
      expect([...services].toSorted().filter((service) => service !== 'logs')).toEqual(['dynamodb', 's3']);
    }
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

  it.each(['planrole', 'finishrole', 'failrole', 'HandlerRole', 'WorkerRole', 'TaskTaskRole'])(
    'let %s launch nothing',
    (prefix) => {
      const found = actions(statements(prefix));
      expect(found).not.toContain('lambda:InvokeFunction');
      expect(found).not.toContain('ecs:RunTask');
      expect(found).not.toContain('iam:PassRole');
    },
  );

  it('let the API reach no objects', () => {
    expect(actions(statements('HandlerRole')).filter((action) => action.startsWith('s3:'))).toEqual([]);
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
    expect(JSON.stringify(statements('WorkerRole'))).not.toContain(':s3:::');
    const more = statements('WorkerRole', synthesized({ inputBuckets: 'texts', outputBuckets: ['results'] }));
    expect(resourcesOf(more, 's3:GetObject')).toContain(':s3:::texts/*');
    expect(resourcesOf(more, 's3:PutObject')).not.toContain(':s3:::texts');
    expect(resourcesOf(more, 's3:PutObject')).toContain(':s3:::results/*');
  });

  it.each(['WorkerRole', 'TaskTaskRole'])('let %s remove nothing but the data of jobs', (prefix) => {
    const more = synthesized({ inputBuckets: 'texts', outputBuckets: 'results' });
    const found = statements(prefix, more).filter(({ Action }) => Action.includes('s3:DeleteObject'));
    expect(found.map(({ Resource }) => JSON.stringify(Resource))).toEqual([
      expect.stringMatching(
        /^\[\{"Fn::Join":\["",\[\{"Fn::ImportValue":"OutriderStorage:[^"]*Data[^"]*"\},"\/jobs\/\*"\]\]\}\]$/,
      ),
    ]);
  });

  it.each(['planrole', 'schedulerole'])('let %s write and remove plans and manifests only', (prefix) => {
    const found = statements(prefix, synthesized({ outputBuckets: 'results' }));
    for (const action of ['s3:PutObject', 's3:DeleteObject']) {
      const changed = resourcesOf(found, action);
      expect(changed).toContain('"/jobs/*"');
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
