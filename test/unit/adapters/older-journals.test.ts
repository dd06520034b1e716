import { deflateRawSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { DynamoJournalStore } from '../../../src/adapters/aws/dynamo-journal-store.ts';
import { DynamoTable } from '../../../src/adapters/aws/dynamo-table.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { freshJobId } from '../../contract/ports/builders.ts';
import { InProcessDynamo } from '../../support/in-process-dynamo.ts';

describe('a journal whose first pieces an older deployment wrote', () => {
  const dynamo = new InProcessDynamo(() => undefined);
  const table = new DynamoTable(dynamo.documents, dynamo.tableName);
  const store = new DynamoJournalStore(table);
  beforeAll(() => dynamo.createTable());

  it('is read on, deflated pieces and those after them', async () => {
    const jobId = freshJobId();
    const [older, newer] = ['{"kind":"session"}\n'.repeat(50), '{"kind":"tick"}\n'.repeat(50)];
    await table.putNew({
      ...{ pk: `JOURNAL#${jobId}`, sk: '0000000001/0000000000', epoch: 1, number: 0 },
      text: new Uint8Array(deflateRawSync(older)),
    });
    await store.append(jobId, { epoch: 1, number: 1, text: newer }, epochMs(0));
    const { pieces } = await store.page(jobId);
    expect(pieces.map(({ text }) => text)).toEqual([older, newer]);
  });
});
