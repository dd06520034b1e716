import { readSession, type WorkerCredentials } from '../../src/adapters/aws/access-item.ts';
import { type AwsSettings, dynamoClient } from '../../src/adapters/aws/clients.ts';
import { watchClock } from '../../src/adapters/aws/clock-error.ts';
import { DynamoTable } from '../../src/adapters/aws/dynamo-table.ts';
import { SystemClock } from '../../src/adapters/node/system-clock.ts';

/** With less than this left, a session is read again: somewhat before clients ask again. */
const renewBelowMs = 6 * 60_000;

/** The session of a job, by which its workers reach what is the job's. */
export interface JobSession {
  /** Of which all clients share one read. */
  readonly credentials: () => Promise<WorkerCredentials>;
  /** Read for whoever asks. */
  readonly fresh: () => Promise<WorkerCredentials>;
  /** By how many milliseconds our clock is ahead, as far as the answer that brought the session has told. Never throws. */
  readonly aheadMs: () => Promise<number>;
}

/** The session that a word leads to, read with the worker's own rights. */
export function jobSession(own: AwsSettings, tableName: string, access: string): JobSession {
  let known: WorkerCredentials | undefined;
  const client = dynamoClient(own);
  const aheadMs = watchClock(client);
  const table = new DynamoTable(client, tableName);
  // The clients compare its end with the machine's clock, whatever that says.
  const clock = new SystemClock();
  const fresh = async (): Promise<WorkerCredentials> => {
    known = await readSession(table, access, () => clock.now());
    return known;
  };
  const credentials = async (): Promise<WorkerCredentials> =>
    known !== undefined && known.expiration.getTime() - clock.now() > renewBelowMs ? known : fresh();
  return {
    fresh,
    credentials,
    aheadMs: async () => {
      await credentials().catch(() => undefined); // Whoever needs it hears why there is none.
      return aheadMs();
    },
  };
}
