import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryCapacityStore } from '../../src/adapters/memory/memory-capacity-store.ts';
import { MemoryDecisionLog } from '../../src/adapters/memory/memory-decision-log.ts';
import { MemoryJobStore } from '../../src/adapters/memory/memory-job-store.ts';
import { MemoryJournalStore } from '../../src/adapters/memory/memory-journal-store.ts';
import { MemoryLeaseStore } from '../../src/adapters/memory/memory-lease-store.ts';
import { MemoryRoster } from '../../src/adapters/memory/memory-roster.ts';
import type { AttemptStore } from '../../src/ports/attempt-store.ts';
import { type CapacityLedger, RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import type { DecisionLog, JobStore, LeaseStore } from '../../src/ports/job-store.ts';
import type { JournalStore } from '../../src/ports/journal-store.ts';
import type { Roster } from '../../src/ports/roster.ts';

/** Where the records of an account lie. */
export interface RecordStores {
  readonly jobs: JobStore;
  readonly attempts: AttemptStore;
  readonly leases: LeaseStore;
  readonly decisions: DecisionLog;
  readonly journals?: JournalStore;
  readonly ledger: CapacityLedger;
  readonly roster: Roster;
}

export const storesInMemory = (): RecordStores => ({
  jobs: new MemoryJobStore(),
  attempts: new MemoryAttemptStore(),
  leases: new MemoryLeaseStore(),
  decisions: new MemoryDecisionLog(),
  journals: new MemoryJournalStore(),
  ledger: new RuledCapacityLedger(new MemoryCapacityStore()),
  roster: new MemoryRoster(),
});
