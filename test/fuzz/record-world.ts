import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { NumberValue, PutCommand, ScanCommand } from '@aws-sdk/lib-dynamodb';
import type { ApiDeps } from '../../functions/api/routes.ts';
import { DynamoAssignmentStatistics } from '../../src/adapters/aws/dynamo-assignment-statistics.ts';
import { DynamoAttemptStore } from '../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoCapacityStore } from '../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { DynamoJournalStore } from '../../src/adapters/aws/dynamo-journal-store.ts';
import { DynamoDecisionLog } from '../../src/adapters/aws/dynamo-decision-log.ts';
import { DynamoJobStore } from '../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoLeaseStore } from '../../src/adapters/aws/dynamo-lease-store.ts';
import { DynamoStragglerStatistics } from '../../src/adapters/aws/dynamo-straggler-statistics.ts';
import type { DynamoTable } from '../../src/adapters/aws/dynamo-table.ts';
import { MemoryClock } from '../../src/adapters/memory/memory-clock.ts';
import { MemoryCoordinator } from '../../src/adapters/memory/memory-coordinator.ts';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { RandomIdSource } from '../../src/adapters/node/random-id-source.ts';
import { durationMs } from '../../src/contracts/units.ts';
import { operators } from '../../src/operators/registry.ts';
import { runPack } from '../../src/worker/run-pack.ts';
import { plainEnvironment } from '../../src/worker/processes/child-environment.ts';
import { userCodeEntry } from '../support/user-code-entry.ts';
import type { FreshTable } from '../contract/ports/servers.ts';
import { hold } from './fuzzer.ts';
import type { JobDeps } from './virtual-job.ts';

export type StoredItem = Record<string, unknown>;

/** Nothing goes on for so long in real time: then time may pass in the virtual one. */
const quietMs = 2;
const dataBucket = 'data';

/** Numbers that the client would refuse to write, as it was told to write them by somebody else. */
const withAnyNumbers = (item: StoredItem): StoredItem =>
  Object.fromEntries(
    Object.entries(item).map(([name, value]) => [
      name,
      typeof value === 'number' && !Number.isSafeInteger(value) ? NumberValue.from(String(value)) : value,
    ]),
  );

/** A system in virtual time over real workers, with its records in a database whose items can be spoilt. */
export class RecordWorld {
  readonly clock = new MemoryClock();
  readonly objects = new MemoryObjectStore();
  readonly logged: string[] = [];
  readonly deps: JobDeps & ApiDeps;
  /** Called after each write of a record, one at a time. */
  onWrite: (writes: number) => Promise<void> = () => Promise.resolve();
  readonly #fresh: FreshTable;
  readonly #scratchRoot: string;
  readonly #attempts: Promise<unknown>[] = [];
  #calls = 0;
  #writes = 0;
  #lastCall = 0;

  private constructor(fresh: FreshTable, scratchRoot: string) {
    this.#fresh = fresh;
    this.#scratchRoot = scratchRoot;
    this.deps = this.#makeDeps(this.#watched(fresh.table));
  }

  static async make(fresh: FreshTable): Promise<RecordWorld> {
    return new RecordWorld(fresh, await mkdtemp(join(tmpdir(), 'outrider-fuzz-')));
  }

  /** The table, telling when it is asked and when it is written. */
  #watched(table: DynamoTable): DynamoTable {
    const seen = async (name: string, run: () => Promise<unknown>): Promise<unknown> => {
      this.#calls++;
      this.#lastCall = Date.now();
      try {
        const answer = await run();
        if (name === 'putNew' || name === 'update') await this.onWrite(++this.#writes);
        return answer;
      } finally {
        this.#calls--;
        this.#lastCall = Date.now();
      }
    };
    return new Proxy(table, {
      get: (target, property) => {
        const method: unknown = Reflect.get(target, property, target);
        if (typeof method !== 'function' || property === 'query') return method;
        return (...args: unknown[]) =>
          seen(String(property), () => Reflect.apply(method, target, args) as Promise<unknown>);
      },
    });
  }

  #makeDeps(table: DynamoTable): JobDeps & ApiDeps {
    const tell = (event: string, details?: unknown): void => {
      this.logged.push(`${event} ${JSON.stringify(details)}`);
    };
    const log = { info: () => undefined, warn: tell };
    const { clock, objects } = this;
    const common = { clock, objects, log, dataBucket, attempts: new DynamoAttemptStore(table) };
    const worker = {
      ...common,
      operators,
      place: { node: 'node', zone: 'zone' },
      scratchRoot: this.#scratchRoot,
      sortMemoryBytes: 1024 * 1024,
      environment: { plain: plainEnvironment(process.env) },
      userCode: { objects, program: { entryPath: userCodeEntry } },
    };
    return {
      ...common,
      jobs: new DynamoJobStore(table),
      leases: new DynamoLeaseStore(table),
      decisions: new DynamoDecisionLog(table),
      journals: new DynamoJournalStore(table),
      ledger: new RuledCapacityLedger(new DynamoCapacityStore(table)),
      assignments: new DynamoAssignmentStatistics(table),
      stragglers: new DynamoStragglerStatistics(table),
      launcher: {
        launch: (requests) =>
          Promise.resolve(
            requests.map(({ payload }) => {
              this.#attempts.push(
                runPack(worker, payload).catch((cause: unknown) => {
                  tell('attempt threw', String(cause));
                }),
              );
              return { attemptId: payload.attemptId, outcome: 'accepted' as const };
            }),
          ),
        stop: () => Promise.resolve(undefined),
      },
      config: {
        tickMs: durationMs(500),
        heartbeatMs: durationMs(1_000),
        leaseMs: durationMs(30_000),
        claimLeaseMs: durationMs(15_000),
        totalSlots: 8,
      },
      coordinator: new MemoryCoordinator(),
      ids: new RandomIdSource(),
      checkOperator: (name, options) => {
        operators[name].check(options);
      },
    };
  }

  /** All items, in order of their keys. */
  async items(): Promise<StoredItem[]> {
    const { documents, name } = this.#fresh;
    const answer = await documents.send(new ScanCommand({ TableName: name, ConsistentRead: true }));
    const keyOf = ({ pk, sk }: StoredItem): string => `${String(pk)} ${String(sk)}`;
    return [...(answer.Items ?? [])].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  }

  async put(item: StoredItem): Promise<void> {
    const { documents, name } = this.#fresh;
    await documents.send(new PutCommand({ TableName: name, Item: withAnyNumbers(item) }));
  }

  /** Runs `work` while virtual time passes, for at most `limitMs` of it: time moves when nothing else does. */
  async whileTimePasses<T>(work: Promise<T>, limitMs: number): Promise<T> {
    const state = { isSettled: false };
    const watched = work.finally(() => {
      state.isSettled = true;
    });
    watched.catch(() => undefined);
    for (let passed = 0; !state.isSettled;) {
      await delay(this.#calls > 0 ? 0 : 1);
      if (this.#calls > 0 || Date.now() - this.#lastCall < quietMs) continue;
      hold(passed < limitMs, 'work ends in virtual time', this.logged.slice(-20));
      await this.clock.advance(500);
      passed += 500;
    }
    return watched;
  }

  /** Waits for attempts that still run, and removes what they have left. */
  async close(): Promise<void> {
    await this.whileTimePasses(Promise.all(this.#attempts), 3_600_000);
    await rm(this.#scratchRoot, { recursive: true, force: true });
  }
}
