import { RemovalPolicy } from 'aws-cdk-lib';
import { type Attribute, AttributeType, BillingMode, ProjectionType, Table } from 'aws-cdk-lib/aws-dynamodb';
import type { Construct } from 'constructs';
import { TableSchema } from '../../src/contracts/settings.ts';

/**
 * The one table of all records. Items lie under their keys alone, since a write costs again for each index that
 * holds the item; but for jobs, which are listed by an index of keys, written once in the life of a job.
 */
export function recordsTable(scope: Construct, id: string): Table {
  const text = (name: string): Attribute => ({ name, type: AttributeType.STRING });
  const table = new Table(scope, id, {
    partitionKey: text(TableSchema.partitionKey),
    sortKey: text(TableSchema.sortKey),
    billingMode: BillingMode.PAY_PER_REQUEST,
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    timeToLiveAttribute: TableSchema.ttl,
    removalPolicy: RemovalPolicy.RETAIN,
  });
  table.addGlobalSecondaryIndex({
    indexName: TableSchema.listingIndex,
    partitionKey: text(TableSchema.listingPartitionKey),
    sortKey: { name: TableSchema.listingSortKey, type: AttributeType.NUMBER },
    projectionType: ProjectionType.KEYS_ONLY,
  });
  return table;
}
