import { Match } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
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

  it('removes intermediate data after 7 days and dead uploads after 2, and outputs never', () => {
    storage?.hasResourceProperties('AWS::S3::Bucket', {
      LifecycleConfiguration: {
        Rules: [
          Match.objectLike({ Prefix: 'jobs/', ExpirationInDays: 7, Status: 'Enabled' }),
          Match.objectLike({ AbortIncompleteMultipartUpload: { DaysAfterInitiation: 2 }, Status: 'Enabled' }),
        ],
      },
    });
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
        { AttributeName: 'changedAt', AttributeType: 'N' },
        { AttributeName: 'listing', AttributeType: 'S' },
        { AttributeName: 'createdAt', AttributeType: 'N' },
      ]),
      LocalSecondaryIndexes: [
        {
          IndexName: 'by-change',
          KeySchema: [
            { AttributeName: 'pk', KeyType: 'HASH' },
            { AttributeName: 'changedAt', KeyType: 'RANGE' },
          ],
          Projection: { ProjectionType: 'ALL' },
        },
      ],
      GlobalSecondaryIndexes: [
        Match.objectLike({
          IndexName: 'by-creation',
          KeySchema: [
            { AttributeName: 'listing', KeyType: 'HASH' },
            { AttributeName: 'createdAt', KeyType: 'RANGE' },
          ],
        }),
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
