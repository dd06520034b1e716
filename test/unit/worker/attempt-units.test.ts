import { beforeAll, describe, expect, it } from 'vitest';
import { DynamoAttemptStore } from '../../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoTable } from '../../../src/adapters/aws/dynamo-table.ts';
import type { AttemptId } from '../../../src/contracts/ids.ts';
import { durationMs } from '../../../src/contracts/units.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { startHeartbeat } from '../../../src/worker/heartbeat.ts';
import { firstReportMs } from '../../../src/core/model/report-cadence.ts';
import { attempt, freshJobId, resultOf } from '../../contract/ports/builders.ts';
import { InProcessDynamo } from '../../support/in-process-dynamo.ts';
import { QuietClock } from '../../support/quiet-clock.ts';

const total = 1_000_000;
const heartbeatMs = durationMs(10_000);
let writeUnits = 0;

describe('what an attempt costs in DynamoDB', () => {
  const dynamo = new InProcessDynamo(
    () => undefined,
    (served) => (writeUnits += served.writeUnits),
  );
  const store = new DynamoAttemptStore(new DynamoTable(dynamo.documents, dynamo.tableName));
  beforeAll(() => dynamo.createTable());

  /** An attempt as its worker and its scheduler write it; its progress goes with its time. */
  async function live(id: AttemptId, isFinal: boolean, seconds = 60): Promise<number> {
    const clock = new QuietClock(() => dynamo.inFlight > 0);
    const space = { jobId: freshJobId(), shards: 1 };
    const meter = new AttemptMeter(clock, new AbortController().signal, () => 0);
    const log = { info: () => undefined, warn: () => undefined };
    writeUnits = 0;
    await clock.until(
      (async () => {
        const place = { node: '2026/11/22/[$LATEST]0123456789abcdef0123456789abcdef', zone: 'use1-az1' };
        await store.create(space, id, clock.now());
        const claimedAt = clock.now();
        await store.claim(space, id, place, claimedAt, firstReportMs(id, heartbeatMs));
        meter.bytesTotal = total;
        meter.enter('compute');
        const heart = startHeartbeat({
          ...{ attempts: store, clock, log, space, meter, attemptId: id, claimedAt, every: heartbeatMs },
          onCancel: () => undefined,
        });
        const upload = { since: clock.now(), uploadId: 'u'.repeat(128) };
        if (isFinal) await store.noteUpload(space, id, { since: upload.since }, clock.now());
        if (isFinal) await store.noteUpload(space, id, upload, clock.now());
        for (let step = 1; step <= 600; step++) {
          await clock.sleep(durationMs((seconds * 1_000) / 600));
          meter.bytesRead = (total * step) / 600;
        }
        await heart.stop();
        const result = resultOf(id, clock.now(), { partitions: { lengths: [1, 2], crcs: [3, 4] } });
        await store.commit(space, { ...result, progress: meter.progress() });
        await store.tell(space, { attemptId: id, kind: 'end' }, clock.now());
        await store.clear(space, await store.told(space));
      })(),
    );
    return writeUnits;
  }

  it.each([0, 1, 2, 3, 4])('is 14 write units at most, of 60 s: task %d', async (task) => {
    expect(await live(attempt(task), false)).toBeLessThanOrEqual(12);
    expect(await live(attempt(task), true)).toBeLessThanOrEqual(14);
  });

  it('is a unit a report, however long the history that each tells once more', async () => {
    // Every ten seconds, and a dozen at its beginning and end.
    expect(await live(attempt(0), true, 840)).toBeLessThanOrEqual(84 + 14);
  });
});
