import * as z from 'zod';
import { UnreadableRecordError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { TableSchema } from '../../contracts/settings.ts';
import type { EpochMs } from '../../contracts/units.ts';
import type { JournalPiece, JournalStore, PiecePlace } from '../../ports/journal-store.ts';
import { packTightly, unpackText, unpackTightly } from './compact.ts';
import type { DynamoTable, Item } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import { problemOf } from './problem-of.ts';

const digits = 10;
/** So many fit an answer of the API, whatever their text. */
const piecesPerPage = 4;
const pieceSchema = z.object({ epoch: z.int().min(0), number: z.int().min(0), text: z.string() });

const partitionOf = (jobId: JobId): string => `JOURNAL#${jobId}`;
/** Padded, so that the order of the sort key is that of schedulers and their pieces. */
const placeKey = ({ epoch, number }: PiecePlace): string =>
  `${String(epoch).padStart(digits, '0')}/${String(number).padStart(digits, '0')}`;

/** Journals in DynamoDB: one item a piece, packed by brotli, written once. Those of an older deployment are deflated, in `text`. */
export class DynamoJournalStore implements JournalStore {
  private readonly table: DynamoTable;

  constructor(table: DynamoTable) {
    this.table = table;
  }

  async append(jobId: JobId, { epoch, number, text }: JournalPiece, now: EpochMs): Promise<void> {
    await this.table.putNew({
      ...{ pk: partitionOf(jobId), sk: placeKey({ epoch, number }) },
      ...{ epoch, number, brotli: packTightly(text) },
      [TableSchema.ttl]: expiryOf(now),
    });
  }

  async page(
    jobId: JobId,
    after?: PiecePlace,
  ): Promise<{ readonly pieces: readonly JournalPiece[]; readonly isLast: boolean }> {
    const pk = partitionOf(jobId);
    const { items, next } = await this.table.page(
      { keys: '#pk = :pk', values: { pk }, isConsistent: true },
      {
        start: after === undefined ? undefined : { pk, sk: placeKey(after) },
        limit: piecesPerPage,
      },
    );
    return { pieces: items.map(decodePiece), isLast: next === undefined };
  }
}

function decodePiece(item: Item): JournalPiece {
  try {
    const { brotli, text } = item;
    const unpacked = brotli === undefined ? unpackText(text) : unpackTightly(brotli);
    return pieceSchema.parse({ ...item, text: unpacked });
  } catch (cause) {
    const key = `${String(item['pk'])}/${String(item['sk'])}`;
    const why = problemOf(cause);
    throw new UnreadableRecordError(`piece ${key} of the journal cannot be read: ${why}`, { key }, { cause });
  }
}
