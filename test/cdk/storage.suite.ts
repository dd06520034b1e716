import { Match } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { expiryOf } from '../../src/adapters/aws/expiry.ts';
import { limits } from '../../src/contracts/limits.ts';
import { epochMs } from '../../src/contracts/units.ts';
import { synthesized } from './synthesized.ts';

const system = synthesized();
const storage = system.stacks.get('OutriderStorage');

describe('the storage stack', () => {
  it('keeps the bucket and the table when the stack goes', () => {
    storage?.hasResource('AWS::S3::Bucket', { DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' });
    storage?.hasResource('AWS::DynamoDB::Table', { DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' });
  });

  it('lets nobody make the data public and nobody read it without TLS', () => {
    storage?.hasResourceProperties('AWS::S3::Bucket', {
      PublicAccessBlockConfiguration: {
        BlockPublicAcls: true,
        BlockPublicPolicy: true,
        IgnorePublicAcls: true,
        RestrictPublicBuckets: true,
      },
    });
    storage?.hasResourceProperties('AWS::S3::BucketPolicy', {
      PolicyDocument: {
        Statement: Match.arrayWith([
          Match.objectLike({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } }),
        ]),
      },
    });
  });

  it('drops what a job left only once the longest job has ended, a day after, and outputs never', () => {
    storage?.hasResourceProperties('AWS::S3::Bucket', {
      LifecycleConfiguration: {
        Rules: [
          Match.objectLike({ Prefix: 'jobs/', ExpirationInDays: 10, Status: 'Enabled' }),
          // What comes with jobs is written anew with each submission; inputs of one's own lie elsewhere and stay.
          Match.objectLike({ Prefix: 'input/files/', ExpirationInDays: 10, Status: 'Enabled' }),
          Match.objectLike({
            AbortIncompleteMultipartUpload: { DaysAfterInitiation: 10 },
            Status: 'Enabled',
          }),
        ],
      },
    });
  });

  it('holds every age at which something is dropped above the longest life of a job', () => {
    const [machine] = system.resources('AWS::StepFunctions::StateMachine');
    const definition = JSON.stringify(machine?.properties['DefinitionString']);
    const longestS = Number(/TimeoutSeconds\W+(\d+)[^T]*$/.exec(definition)?.[1]);
    expect(longestS).toBe(8 * 86_400);
    // Later than the deadline of every job, 7 days at most, by a day in which a late one can end in order.
    expect(longestS * 1_000 - limits.maxDeadlineMs).toBe(86_400_000);
    const [bucket] = system.resources('AWS::S3::Bucket');
    const ages = JSON.stringify(bucket?.properties['LifecycleConfiguration']).match(
      /(?<=ExpirationInDays":|DaysAfterInitiation":)\d+/g,
    );
    const logDays = system
      .resources('AWS::Logs::LogGroup')
      .map(({ properties }) => Number(properties['RetentionInDays']));
    const recordsS = expiryOf(epochMs(1_000_000)) - 1_000;
    expect(ages).toHaveLength(3);
    for (const days of [...(ages ?? []).map(Number), ...logDays, recordsS / 86_400]) {
      // Two days more than an execution: for a late beginning, and for an ending that is tried again.
      expect(days * 86_400 - longestS).toBeGreaterThanOrEqual(2 * 86_400);
    }
    expect(limits.sweepHorizonMs / 1_000 - longestS).toBeGreaterThanOrEqual(3 * 86_400);
    expect(limits.sweepHorizonMs).toBeLessThan(limits.recordsKeptMs);
  });

  it.each([
    ['intermediateDays', 9],
    ['intermediateDays', '2'],
    ['logRetentionDays', 7],
  ])('refuses %s of %s: a job may live longer', (name, days) => {
    expect(() => synthesized({ [name]: days })).toThrow(
      `context "${name}": must be at least 10: a job may live up to 9 days`,
    );
  });

  it('has the keys and indexes that the stores use, on demand, recoverable, with a time to live', () => {
    storage?.hasResourceProperties('AWS::DynamoDB::Table', {
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      AttributeDefinitions: Match.arrayWith([
        { AttributeName: 'pk', AttributeType: 'S' },
        { AttributeName: 'sk', AttributeType: 'S' },
        { AttributeName: 'listing', AttributeType: 'S' },
        { AttributeName: 'createdAt', AttributeType: 'N' },
      ]),
      // A write costs again for each index that holds what it changes: no record of an attempt is in any.
      LocalSecondaryIndexes: Match.absent(),
      GlobalSecondaryIndexes: [
        {
          IndexName: 'by-creation',
          KeySchema: [
            { AttributeName: 'listing', KeyType: 'HASH' },
            { AttributeName: 'createdAt', KeyType: 'RANGE' },
          ],
          Projection: { ProjectionType: 'KEYS_ONLY' },
        },
      ],
      BillingMode: 'PAY_PER_REQUEST',
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      TimeToLiveSpecification: { AttributeName: 'expiresAt', Enabled: true },
    });
  });

  it('keeps every log group for a stated time', () => {
    const groups = system.resources('AWS::Logs::LogGroup');
    expect(groups.length).toBeGreaterThan(0);
    expect(groups.map(({ properties }) => properties['RetentionInDays'])).toEqual(groups.map(() => 30));
  });
});

describe('the zones of the tier zonal', () => {
  it('have a directory bucket each where a parameter names one, in which what jobs leave goes by itself', () => {
    const buckets = system.resources('AWS::S3Express::DirectoryBucket');
    expect(buckets.map(({ template }) => template['Condition'])).toEqual([
      'HasZonalZone1',
      'HasZonalZone2',
      'HasZonalZone3',
    ]);
    for (const { properties } of buckets) {
      expect(properties).toMatchObject({
        DataRedundancy: 'SingleAvailabilityZone',
        LifecycleConfiguration: {
          Rules: [
            { Prefix: 'jobs/', ExpirationInDays: 10, Status: 'Enabled' },
            { AbortIncompleteMultipartUpload: { DaysAfterInitiation: 10 }, Status: 'Enabled' },
          ],
        },
      });
    }
    for (const template of system.stacks.values()) template.hasParameter('ZonalZone1', { Default: '' });
  });

  it('let the service that carries out lifecycle rules have sessions in which it may delete, and nobody else', () => {
    const buckets = system.resources('AWS::S3Express::DirectoryBucket');
    const policies = system.resources('AWS::S3Express::BucketPolicy');
    expect(policies).toHaveLength(3);
    policies.forEach(({ template, properties }, index) => {
      const bucket = buckets[index];
      expect(template['Condition']).toBe(bucket?.template['Condition']);
      expect(properties).toEqual({
        Bucket: { Ref: bucket?.logicalId },
        PolicyDocument: {
          Version: '2012-10-17',
          Statement: [
            {
              Effect: 'Allow',
              Principal: { Service: 'lifecycle.s3.amazonaws.com' },
              Action: 's3express:CreateSession',
              Resource: { 'Fn::GetAtt': [bucket?.logicalId, 'Arn'] },
              Condition: { StringEquals: { 's3express:SessionMode': 'ReadWrite' } },
            },
          ],
        },
      });
    });
  });

  it('may be written with the session of a job alone, also on Fargate: tasks have no right to them by themselves', () => {
    const found = system
      .resources('AWS::IAM::Policy')
      .filter(({ properties }) => JSON.stringify(properties).includes('s3express:CreateSession'))
      .map(({ logicalId }) => logicalId.replace(/DefaultPolicy.*$/, ''));
    expect(found.toSorted()).toEqual([
      'JobAccessRole',
      ...['failrole', 'finishrole', 'schedulerole', 'settlerole', 'sweeprole'],
    ]);
  });

  it('may be read by the scheduler, as copies from there need, and not be written', () => {
    const found = system
      .resources('AWS::IAM::Policy')
      .filter(({ logicalId }) => logicalId.startsWith('schedulerole'))
      .map(({ properties }) => JSON.stringify(properties));
    expect(found.join().match(/s3express:CreateSession/g)).toHaveLength(1);
    expect(found.join()).toMatch(
      /"s3express:CreateSession","Condition":\{"StringEquals":\{"s3express:SessionMode":"ReadOnly"\}\}/,
    );
  });
});
