import { afterAll, beforeAll } from 'vitest';
import { DynamoAssignmentStatistics } from '../../../src/adapters/aws/dynamo-assignment-statistics.ts';
import { DynamoAttemptStore } from '../../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoCapacityStore } from '../../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { DynamoDecisionLog } from '../../../src/adapters/aws/dynamo-decision-log.ts';
import { DynamoJobStore } from '../../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoJournalStore } from '../../../src/adapters/aws/dynamo-journal-store.ts';
import { DynamoLeaseStore } from '../../../src/adapters/aws/dynamo-lease-store.ts';
import { DynamoRoster } from '../../../src/adapters/aws/dynamo-roster.ts';
import { DynamoLossBookStore } from '../../../src/adapters/aws/dynamo-loss-book-store.ts';
import { DynamoNodeBookStore } from '../../../src/adapters/aws/dynamo-node-book-store.ts';
import { DynamoZoneBookStore } from '../../../src/adapters/aws/dynamo-zone-book-store.ts';
import { DynamoStragglerStatistics } from '../../../src/adapters/aws/dynamo-straggler-statistics.ts';
import { DynamoSweepMark } from '../../../src/adapters/aws/dynamo-sweep-mark.ts';
import type { DynamoTable } from '../../../src/adapters/aws/dynamo-table.ts';
import { describeAssignmentStatistics } from './assignment-statistics-suite.ts';
import { describeAttemptStore } from './attempt-store-suite.ts';
import { describeCapacityLedger } from './capacity-ledger-suite.ts';
import { describeCapacityStore } from './capacity-store-suite.ts';
import { describeCloneAdmission } from './clone-admission-suite.ts';
import { describeClonePreemption } from './clone-preemption-suite.ts';
import { describeDecisionLog } from './decision-log-suite.ts';
import { describeJobStore } from './job-store-suite.ts';
import { describeJournalStore } from './journal-store-suite.ts';
import { describeLeaseStore } from './lease-store-suite.ts';
import { describeRoster } from './roster-suite.ts';
import { describeSweepMark } from './sweep-mark-suite.ts';
import { describeLossBookStore } from './loss-book-suite.ts';
import { describeNodeBookStore } from './node-book-suite.ts';
import { describeZoneBookStore } from './zone-book-suite.ts';
import { describeStragglerStatistics } from './straggler-statistics-suite.ts';
import type { TableServer } from './servers.ts';

/** Holds every adapter over DynamoDB to its contract, on one server. */
export function describeDynamoStores(start: () => Promise<TableServer>): void {
  let server: TableServer;
  let shared: DynamoTable;
  beforeAll(async () => {
    server = await start();
    shared = await server.freshTable();
  });
  afterAll(async () => {
    await server.close();
  });

  describeJobStore('DynamoDB', async () => new DynamoJobStore(await server.freshTable()));
  describeLeaseStore('DynamoDB', () => new DynamoLeaseStore(shared));
  describeDecisionLog('DynamoDB', () => new DynamoDecisionLog(shared));
  describeJournalStore('DynamoDB', () => new DynamoJournalStore(shared));
  describeAttemptStore('DynamoDB', () => new DynamoAttemptStore(shared));
  describeCapacityStore('DynamoDB', async () => {
    const table = await server.freshTable();
    return () => new DynamoCapacityStore(table);
  });
  describeCapacityLedger(
    'DynamoDB',
    async () => new RuledCapacityLedger(new DynamoCapacityStore(await server.freshTable())),
  );
  describeCloneAdmission(
    'DynamoDB',
    async () => new RuledCapacityLedger(new DynamoCapacityStore(await server.freshTable())),
  );
  describeClonePreemption(
    'DynamoDB',
    async () => new RuledCapacityLedger(new DynamoCapacityStore(await server.freshTable())),
  );
  describeRoster('DynamoDB', async () => new DynamoRoster(await server.freshTable()));
  describeSweepMark('DynamoDB', async () => new DynamoSweepMark(await server.freshTable()));
  describeLossBookStore('DynamoDB', async () => new DynamoLossBookStore(await server.freshTable()));
  describeNodeBookStore('DynamoDB', async () => new DynamoNodeBookStore(await server.freshTable()));
  describeZoneBookStore('DynamoDB', async () => new DynamoZoneBookStore(await server.freshTable()));
  describeStragglerStatistics(
    'DynamoDB',
    async () => new DynamoStragglerStatistics(await server.freshTable()),
  );
  describeAssignmentStatistics(
    'DynamoDB',
    async () => new DynamoAssignmentStatistics(await server.freshTable()),
  );
}
