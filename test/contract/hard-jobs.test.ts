import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoAttemptStore } from '../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoCapacityStore } from '../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { DynamoDecisionLog } from '../../src/adapters/aws/dynamo-decision-log.ts';
import { DynamoJobStore } from '../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoLeaseStore } from '../../src/adapters/aws/dynamo-lease-store.ts';
import { DynamoRoster } from '../../src/adapters/aws/dynamo-roster.ts';
import type { DynamoTable } from '../../src/adapters/aws/dynamo-table.ts';
import { epochMs } from '../../src/contracts/units.ts';
import type { RecordStores } from '../support/record-stores.ts';
import { hardJob } from '../support/hard-jobs.ts';
import { illKinds } from '../support/hard-process.ts';
import { startTables, type TableServer } from './ports/servers.ts';

const hourMs = 3_600_000;

/** Counts calls under way: time stands still until they have ended. */
class Pending {
  private calls = 0;

  readonly isBusy = (): boolean => this.calls > 0;

  watch<Store extends object>(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name, target);
        if (typeof method !== 'function') return method;
        // The log of decisions alone is read as a stream.
        if (target instanceof DynamoDecisionLog && name === 'read')
          return (...args: unknown[]) =>
            this.stream(Reflect.apply(method, target, args) as AsyncIterable<unknown>);
        return (...args: unknown[]) => this.call(() => Reflect.apply(method, target, args) as unknown);
      },
    });
  }

  private async call(run: () => unknown): Promise<unknown> {
    this.calls += 1;
    try {
      return await run();
    } finally {
      this.calls -= 1;
    }
  }

  private async *stream(items: AsyncIterable<unknown>): AsyncGenerator {
    this.calls += 1;
    try {
      yield* items;
    } finally {
      this.calls -= 1;
    }
  }
}

function storesIn(table: DynamoTable, pending: Pending): RecordStores {
  return {
    jobs: pending.watch(new DynamoJobStore(table)),
    attempts: pending.watch(new DynamoAttemptStore(table)),
    leases: pending.watch(new DynamoLeaseStore(table)),
    decisions: pending.watch(new DynamoDecisionLog(table)),
    ledger: pending.watch(new RuledCapacityLedger(new DynamoCapacityStore(table))),
    roster: pending.watch(new DynamoRoster(table)),
  };
}

const arbIlls = fc.dictionary(
  fc.constantFrom('scheduler 1', 'scheduler 2', 'plan 1', 'finish 1', 'tokenize/0/0 1', 'count/0/0 1'),
  fc
    .record({
      kind: fc.constantFrom(...illKinds),
      call: fc.integer({ min: 1, max: 40 }),
      ms: fc.constantFrom(6_000, 60_000, 90_000),
    })
    .map((ill) => [ill]),
  { maxKeys: 3 },
);

describe('a job over DynamoDB whose processes freeze, die and err by the clock, and whose calls come late or twice', () => {
  let server: TableServer;
  beforeAll(async () => {
    const hasDynoxide = process.platform === 'linux' && process.arch === 'x64';
    server = await startTables(hasDynoxide ? 'dynoxide' : 'dynalite');
  });
  afterAll(async () => {
    await server.close();
  });

  it('ends well and exact, each launch explained by a failure or a copy', async () => {
    await fc.assert(
      fc.asyncProperty(arbIlls, fc.constantFrom(-hourMs, 0, hourMs), async (ills, offMs) => {
        const pending = new Pending();
        let processes = 0;
        const { complaints, events } = await hardJob({
          ...{ ills, taskMs: 3_000, deathToldMs: 2_000 },
          stores: storesIn(await server.freshTable(), pending),
          isBusy: pending.isBusy,
          // A table drops what is past its time to live by the machine's clock.
          startAt: epochMs(Date.UTC(2100, 0, 1)),
          offMs: () => (processes++ % 2 === 0 ? offMs : 0),
        });
        expect(complaints, events.join('\n')).toEqual([]);
      }),
      { numRuns: 8 },
    );
  }, 600_000);
});
