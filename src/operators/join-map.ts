import { invariant } from '../contracts/errors.ts';
import { forEachRow } from '../worker/row-places.ts';
import type { Operator, Row, TaskContext, TaskInput } from '../worker/operator.ts';
import { partitionOf } from '../worker/partition-of.ts';
import { hasDuckDb } from './duckdb/engine.ts';
import { joinSideNames, joinSideOptions } from './join-options.ts';
import type { JoinSideOptions } from './join-options.ts';
import { PieceCutter, rowOrder } from './join-pieces.ts';
import type { Piece, PieceTable } from './join-pieces.ts';
import { joinKeyOf, keptOf, schemaKey } from './join-rows.ts';
import { onlyOptions } from './options.ts';
import { pieceKey, RowPacker } from './packed-rows.ts';

/**
 * One side of a join. Rows whose key is null are left out, since they match nothing. Rows of CSV travel in pieces, and
 * others, too, where there is DuckDB, else one by one: (JSON of the key, the row as `RowPacker` packs it). Each partition also gets the
 * columns of the rows, before them by their empty key; where they are those of the whole side, CSV can be written. A task
 * without rows tells those of the first file: a side of files that have but a header has columns all the same.
 */
export const joinMap: Operator = {
  check(options) {
    onlyOptions(options, joinSideNames);
    joinSideOptions(options);
  },
  async run(context) {
    const sender = new SideSender(context, joinSideOptions(context.options));
    await sender.begin();
    const isByPieces = hasDuckDb(context.engine);
    for (const input of context.inputs) {
      if (context.engine?.memoryBytes !== 0 && input.csv !== undefined) await sender.sendCsv(input);
      else await sender.sendRows(input, isByPieces);
    }
    await sender.end();
  },
};

/** Sends the rows of a task to the partitions of their keys. */
class SideSender {
  readonly #context: TaskContext;
  readonly #side: JoinSideOptions;
  readonly #packer: RowPacker;
  readonly #cutter: PieceCutter;
  /** Tables that were begun and not told of, in order. */
  readonly #begun: PieceTable[] = [];
  readonly #tables = new Map<PieceTable, number>();
  #pieces = 0;
  /** Whether the columns of the whole side were told. */
  #isKnown = false;

  constructor(context: TaskContext, side: JoinSideOptions) {
    this.#context = context;
    this.#side = side;
    this.#packer = new RowPacker({ task: context.task, ...side });
    this.#cutter = new PieceCutter({
      partitions: context.partitions,
      side,
      begin: (table) => {
        this.#begun.push(table);
      },
      take: (piece) => this.#sendPiece(piece),
    });
  }

  async begin(): Promise<void> {
    if (this.#side.columns !== undefined) await this.#announced(this.#side.columns, true);
  }

  async sendCsv(input: TaskInput): Promise<void> {
    const { key, columns } = this.#side;
    for await (const block of input.csv?.(key, columns) ?? []) await this.#cutter.csv(block);
  }

  async sendRows(input: TaskInput, isByPieces: boolean): Promise<void> {
    const side = this.#side;
    await forEachRow(input, (row) => {
      const isWhole = side.columns === undefined && input.format === 'csv';
      // Also of a row that is left out: the columns of a side are known by its first one.
      const first = isWhole && !this.#isKnown ? this.#announced(Object.keys(row), true) : undefined;
      const key = joinKeyOf(row, side, input.format);
      if (key === undefined) return first;
      const kept = keptOf(row, side, input.format);
      const cut = isByPieces && first === undefined ? this.#cutter.row(kept, key) : 'refused';
      return cut === 'refused' ? this.#sendRow(kept, key, first) : cut;
    });
  }

  async end(): Promise<void> {
    await this.#cutter.flush();
    if (this.#isKnown) return;
    for (const input of this.#context.inputs) {
      const columns = await input.firstColumns?.();
      if (columns !== undefined) await this.#announce(this.#packer.announceEmpty(rowOrder(columns)));
    }
  }

  #sendRow(kept: Row, key: string, first: Promise<void> | undefined): Promise<void> | undefined {
    const { output, partitions } = this.#context;
    const said = first ?? this.#announced(Object.keys(kept), false);
    const emit = (): Promise<void> | undefined => {
      const bytes = Buffer.from(key);
      return output.emit(bytes, this.#packer.pack(kept), partitionOf(bytes, partitions));
    };
    return said === undefined ? emit() : said.then(emit);
  }

  async #sendPiece({ table, partition, bytes, rows, isPlain }: Piece): Promise<void> {
    const { output, task, tally } = this.#context;
    for (const one of this.#begun.splice(0)) await this.#announceTable(one);
    const schema = this.#tables.get(table);
    invariant(schema !== undefined, 'a table is begun before its pieces');
    const key = pieceKey({ task, schema, number: this.#pieces++, rows, isPlain });
    await output.emit(key, bytes, partition);
    tally?.({ out: rows - 1 });
  }

  async #announceTable(table: PieceTable): Promise<void> {
    const isWhole = this.#side.columns === undefined && table.form.kind === 'csv';
    const { schema, said } = this.#packer.announceTable(table, isWhole && !this.#isKnown);
    this.#isKnown ||= isWhole;
    this.#tables.set(table, schema);
    await this.#announce(said);
  }

  #announced(columns: readonly string[], isWhole: boolean): Promise<void> | undefined {
    const said = this.#packer.announce(columns, isWhole && !this.#isKnown);
    this.#isKnown ||= isWhole;
    return said === undefined ? undefined : this.#announce(said);
  }

  async #announce(said: Buffer): Promise<void> {
    const { output, partitions } = this.#context;
    for (let partition = 0; partition < partitions; partition++)
      await output.emit(schemaKey, said, partition);
  }
}
