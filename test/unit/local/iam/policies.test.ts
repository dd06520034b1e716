import { describe, expect, it } from 'vitest';
import { evaluate, type Wish } from '../../../../src/local/iam/evaluate.ts';
import { isLike } from '../../../../src/local/iam/pattern.ts';
import { readPolicy, readTrust, type Statement } from '../../../../src/local/iam/policy.ts';
import { wishesOf } from '../../../../src/local/iam/wishes.ts';

const tagged = (value: string) => new Map([['aws:principaltag/outrider-job', [value]]]);

/** Statements of a policy that must be known. */
function statementsOf(...Statement: readonly object[]): readonly Statement[] {
  const found = readPolicy({ Version: '2012-10-17', Statement });
  if ('problem' in found) throw new Error(`${found.path} ${found.problem}`);
  return found;
}

describe('a pattern', () => {
  it.each([
    ['abc', 'abc', true],
    ['abc', 'ABC', false],
    ['abc', 'a*', true],
    ['abc', '*c', true],
    ['abc', 'a?c', true],
    ['ac', 'a?c', false],
    ['', '*', true],
    ['a/b/c', 'a/*', true],
    ['aXbXc', 'a*b*c', true],
    ['aXbX', 'a*b*c', false],
    ['a*c', 'a${*}c', true],
    ['abc', 'a${*}c', false],
    ['a$c', 'a${$}c', true],
    ['a?c', 'a${?}c', true],
    ['😀', '?', true],
  ])('of %j and %j: %j', (text, pattern, expected) => {
    expect(isLike(text, pattern, new Map())).toBe(expected);
  });

  it('takes the value of a variable character by character, and tells where it has none', () => {
    const pattern = 'J#${aws:PrincipalTag/outrider-job}#*';
    expect(isLike('J#a-1#0', pattern, tagged('a-1'))).toBe(true);
    expect(isLike('J#a-12#0', pattern, tagged('a-1'))).toBe(false);
    expect(isLike('J#abc#0', pattern, tagged('a*'))).toBe(false);
    expect(isLike('J#a-1#0', pattern, new Map())).toBeUndefined();
    expect(
      isLike('J#a-1#0', pattern, new Map([['aws:principaltag/outrider-job', ['a-1', 'b']]])),
    ).toBeUndefined();
  });

  it('with many stars is no work without end', () => {
    expect(isLike('a'.repeat(2_000), `${'a*'.repeat(500)}b`, new Map())).toBe(false);
  });
});

describe('statements', () => {
  const read: Wish = { action: 's3:GetObject', resource: 'arn:aws:s3:::b/k' };
  const allow = { Effect: 'Allow', Action: 's3:GetObject', Resource: '*' };

  it('allow nothing that none of them says, and nothing that one denies', () => {
    expect(evaluate([], read, new Map())).toBe('not-allowed');
    expect(evaluate(statementsOf(allow), read, new Map())).toBe('allowed');
    expect(evaluate(statementsOf({ ...allow, Action: 's3:get*' }), read, new Map())).toBe('allowed');
    expect(evaluate(statementsOf(allow, { ...allow, Effect: 'Deny' }), read, new Map())).toBe('denied');
  });

  it('mean by NotResource all but what it names', () => {
    const elsewhere = statementsOf({
      Effect: 'Allow',
      Action: 's3:GetObject',
      NotResource: ['arn:aws:s3:::b/jobs/*', 'arn:aws:s3:::c/*'],
    });
    expect(evaluate(elsewhere, read, new Map())).toBe('allowed');
    expect(evaluate(elsewhere, { ...read, resource: 'arn:aws:s3:::b/jobs/x' }, new Map())).toBe(
      'not-allowed',
    );
  });

  it('count for nothing where a variable of theirs has no value', () => {
    const resource = 'arn:aws:s3:::b/${aws:PrincipalTag/outrider-job}';
    expect(evaluate(statementsOf({ ...allow, Resource: resource }), read, new Map())).toBe('not-allowed');
    expect(evaluate(statementsOf({ ...allow, Resource: resource }), read, tagged('k'))).toBe('allowed');
  });

  it.each([
    ['all values like the pattern', ['J#a#1', 'J#a#2'], 'allowed'],
    ['one value of another', ['J#a#1', 'J#b#1'], 'not-allowed'],
    ['no value at all', undefined, 'not-allowed'],
  ])('bound leading keys: %s', (_, keys, expected) => {
    const bound = statementsOf({
      Effect: 'Allow',
      Action: 'dynamodb:GetItem',
      Resource: '*',
      Condition: {
        'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['J#a#*'] },
        Null: { 'dynamodb:LeadingKeys': 'false' },
      },
    });
    const context = new Map(keys === undefined ? [] : [['dynamodb:leadingkeys', keys]]);
    expect(evaluate(bound, { action: 'dynamodb:GetItem', resource: 'arn' }, context)).toBe(expected);
  });
});

describe('a policy that says more than is known here', () => {
  const good = { Effect: 'Allow', Action: 's3:GetObject', Resource: '*' };
  it.each([
    ['an old version', { Version: '2008-10-17', Statement: [good] }, 'Version'],
    [
      'a condition',
      { Version: '2012-10-17', Statement: [{ ...good, Condition: { IpAddress: { a: 'b' } } }] },
      'Condition',
    ],
    [
      'NotAction',
      { Version: '2012-10-17', Statement: [{ Effect: 'Allow', NotAction: 's3:*', Resource: '*' }] },
      'Statement',
    ],
    [
      'neither resource',
      { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: 's3:*' }] },
      'Statement',
    ],
    ['both resources', { Version: '2012-10-17', Statement: [{ ...good, NotResource: '*' }] }, 'Statement'],
    ['no policy', 'nothing', ''],
  ])('%s: is refused, by where it says so', (_, document, path) => {
    const found = readPolicy(document);
    expect(found).toHaveProperty('problem');
    expect('path' in found ? found.path : undefined).toContain(path);
  });

  it('is refused as a trust policy too', () => {
    const trust = { Effect: 'Allow', Action: 'sts:AssumeRole', Principal: { Federated: 'x' } };
    expect(readTrust({ Version: '2012-10-17', Statement: [trust] })).toHaveProperty('problem');
  });
});

describe('what a request wants', () => {
  const around = {
    region: 'us-east-1',
    accountId: '000000000000',
    partitionKeys: new Map([
      ['t', 'pk'],
      ['t/index/by-creation', 'listing'],
    ]),
    taskRoles: new Map([['worker', ['arn:role/task', 'arn:role/agent']]]),
  };
  const dynamo = (operation: string, input: object) =>
    wishesOf({ service: 'dynamodb', operation, resource: '', input }, around);
  const keysOf = (operation: string, input: object) =>
    dynamo(operation, input).context.get('dynamodb:leadingkeys');
  const key = { pk: { S: 'J#a#1' }, sk: { S: 'x' } };

  it.each([
    ['GetItem', { TableName: 't', Key: key }, ['J#a#1']],
    ['UpdateItem', { TableName: 't', Key: key }, ['J#a#1']],
    ['PutItem', { TableName: 't', Item: key }, ['J#a#1']],
    ['PutItem', { TableName: 't', Item: { sk: { S: 'x' } } }, undefined],
    ['PutItem', { TableName: 't', Item: { pk: { N: '1' } } }, undefined],
    ['BatchGetItem', { RequestItems: { t: { Keys: [key, { pk: { S: 'J#b#1' } }] } } }, ['J#a#1', 'J#b#1']],
    ['BatchGetItem', { RequestItems: { t: { Keys: [key, {}] } } }, undefined],
    ['Scan', { TableName: 't' }, undefined],
    ['TransactWriteItems', { TransactItems: [] }, undefined],
    [
      'Query',
      {
        TableName: 't',
        KeyConditionExpression: '#pk = :pk AND #sk = :sk',
        ExpressionAttributeNames: { '#pk': 'pk', '#sk': 'sk' },
        ExpressionAttributeValues: { ':pk': { S: 'J#a#1' }, ':sk': { S: 'J#b#1' } },
      },
      ['J#a#1'],
    ],
    [
      'Query',
      {
        TableName: 't',
        IndexName: 'by-creation',
        KeyConditionExpression: 'listing = :l',
        ExpressionAttributeValues: { ':l': { S: 'JOBS' } },
      },
      ['JOBS'],
    ],
  ])('%s of %j has the leading keys %j', (operation, input, expected) => {
    expect(keysOf(operation, input)).toEqual(expected);
  });

  it('names tables and their indexes by ARN, also where the request does', () => {
    const table = 'arn:aws:dynamodb:us-east-1:000000000000:table/t';
    expect(dynamo('GetItem', { TableName: table, Key: key }).wishes).toEqual([
      { action: 'dynamodb:GetItem', resource: table },
    ]);
    expect(dynamo('Query', { TableName: 't', IndexName: 'i' }).wishes[0]?.resource).toBe(`${table}/index/i`);
  });

  it.each([
    ['HeadObject', 'b/k', [['s3:GetObject', 'arn:aws:s3:::b/k']]],
    ['CompleteMultipartUpload', 'b/k', [['s3:PutObject', 'arn:aws:s3:::b/k']]],
    ['ListObjectsV2', 'b', [['s3:ListBucket', 'arn:aws:s3:::b']]],
    ['DeleteObjects', 'b', []],
  ])('%s of %s in S3', (operation, resource, expected) => {
    const { wishes } = wishesOf({ service: 's3', operation, resource }, around);
    expect(wishes.map(({ action, resource: arn }) => [action, arn])).toEqual(expected);
  });

  it('is for a copy in S3 to read its source as well, however that is written', () => {
    for (const source of ['/c/a%20b', 'c/a%20b?versionId=1']) {
      const headers = new Map([['x-amz-copy-source', source]]);
      const { wishes } = wishesOf(
        { service: 's3', operation: 'CopyObject', resource: 'b/k', headers },
        around,
      );
      expect(wishes).toContainEqual({ action: 's3:GetObject', resource: 'arn:aws:s3:::c/a b' });
    }
  });

  it('is for a task to be started also that its roles are passed on', () => {
    const facts = {
      service: 'ecs',
      operation: 'RunTask',
      resource: 'worker',
      input: { cluster: 'c', taskDefinition: 'worker' },
    };
    const { wishes, context } = wishesOf(facts, around);
    expect(wishes.map(({ action }) => action)).toEqual(['ecs:RunTask', 'iam:PassRole', 'iam:PassRole']);
    expect(context.get('ecs:cluster')).toEqual(['arn:aws:ecs:us-east-1:000000000000:cluster/c']);
  });

  it('is on everything where the operation is not known', () => {
    expect(wishesOf({ service: 'sqs', operation: 'Send', resource: 'q' }, around).wishes).toEqual([
      { action: 'sqs:Send', resource: '*' },
    ]);
  });
});
