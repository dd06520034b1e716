import { MemoryAttemptStore } from '../../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryCapacityLedger } from '../../../src/adapters/memory/memory-capacity-ledger.ts';
import { MemoryDecisionLog } from '../../../src/adapters/memory/memory-decision-log.ts';
import { MemoryJobStore } from '../../../src/adapters/memory/memory-job-store.ts';
import { MemoryLeaseStore } from '../../../src/adapters/memory/memory-lease-store.ts';
import { describeAttemptStore } from './attempt-store-suite.ts';
import { describeCapacityLedger } from './capacity-ledger-suite.ts';
import { describeCloneAdmission } from './clone-admission-suite.ts';
import { describeDecisionLog } from './decision-log-suite.ts';
import { describeJobStore } from './job-store-suite.ts';
import { describeLeaseStore } from './lease-store-suite.ts';

describeJobStore('memory', () => new MemoryJobStore());
describeLeaseStore('memory', () => new MemoryLeaseStore());
describeDecisionLog('memory', () => new MemoryDecisionLog());
describeAttemptStore('memory', () => new MemoryAttemptStore());
describeCapacityLedger('memory', () => new MemoryCapacityLedger());
describeCloneAdmission('memory', () => new MemoryCapacityLedger());
