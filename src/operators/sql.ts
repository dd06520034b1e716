import { createReadStream, existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { BadInputError } from '../worker/operator.ts';
import type { Operator, TaskContext } from '../worker/operator.ts';
import { Engine, sqlName, sqlText } from './duckdb/engine.ts';
import { sendFile } from './duckdb/parquet-pieces.ts';
import { addTable } from './duckdb/sql-tables.ts';
import { flagOption, onlyOptions, textOption, textsOption, wrongOption } from './options.ts';
import type { Options } from './options.ts';

const formats = ['csv', 'ndjson', 'parquet'] as const;
type Format = (typeof formats)[number];

interface SqlOptions {
  readonly query: string;
  /** Names of the inputs as tables, in their order. */
  readonly tables: readonly string[] | undefined;
  /** Rows that are alike in these columns go to one task of the next stage. */
  readonly partitionBy: readonly string[] | undefined;
  readonly output: Format | undefined;
  readonly header: boolean;
}

const longestQuery = 64 * 1024;
const oneSelect = 'one SELECT, of at most 65536 characters';
/** A query, behind any comments: what it does is judged by DuckDB itself, before it runs. */
const queryStart = /^(?:\s|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*(?:\(|(?:select|with|from|values)\b)/i;
const partitionColumn = 'outrider partition';

function sqlOptions(options: Options): SqlOptions {
  onlyOptions(options, ['query', 'tables', 'partitionBy', 'output', 'header']);
  const query = textOption(options, 'query', oneSelect);
  if (query.length > longestQuery || !queryStart.test(query)) throw wrongOption('query', oneSelect);
  const given = options['output'];
  const output = formats.find((format) => format === given);
  if (given !== undefined && output === undefined)
    throw wrongOption('output', `one of ${formats.join(', ')}`);
  return {
    query: query.trim().replace(/;$/, ''),
    tables: textsOption(options, 'tables'),
    partitionBy: textsOption(options, 'partitionBy'),
    output,
    header: flagOption(options, 'header', true),
  };
}

/**
 * A `SELECT` over the inputs of a task, each of them a table: by the names in `tables`, else a stage by its own name and
 * files as `input`, `input2` and so on. It can read nothing else, and write nothing. Between stages rows travel as
 * Parquet, by `partitionBy`; the final stage writes `output`.
 */
export const sql: Operator = {
  check(options) {
    sqlOptions(options);
  },
  async run(context) {
    const { inputs, scratchDir: dir, engine: size, signal, tally } = context;
    const options = sqlOptions(context.options);
    const engine = await Engine.open({ scratchDir: dir, size, signal });
    try {
      const names = tableNames(context, options.tables);
      for (const [index, input] of inputs.entries())
        await addTable(engine, input, {
          name: names[index] ?? '',
          file: `table${String(index)}`,
          dir,
          tally,
        });
      await asked(async () => {
        const { count, isSelect } = await engine.statementsOf(options.query);
        if (count !== 1 || !isSelect) throw new BadInputError(`it must be ${oneSelect}`);
      });
      if (context.isFinal === false && (options.output ?? 'parquet') === 'parquet')
        await sendPartitions(engine, context, options);
      else await writeText(engine, context, options);
    } finally {
      engine.close();
    }
  },
};

function tableNames({ inputs }: TaskContext, given: readonly string[] | undefined): readonly string[] {
  if (given !== undefined && given.length !== inputs.length)
    throw wrongOption('tables', `a list of ${String(inputs.length)} names, one for each input`);
  let files = 0;
  return inputs.map(({ kind, stage }, index) => {
    if (kind === 'source') files++;
    const usual = kind === 'stage' ? stage : files === 1 ? 'input' : `input${String(files)}`;
    return given?.[index] ?? usual ?? 'input';
  });
}

/** What goes wrong in a query is the user's to mend, but for want of memory. */
async function asked(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    const message = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
    if (/^Out of Memory|Interrupt/i.test(message)) throw cause;
    const isRefused = /^Permission Error|has been locked|Secret|Extension/i.test(message);
    const what = isRefused ? 'a query can read its inputs and nothing else' : 'the query fails';
    throw new BadInputError(`options.query: ${what}: ${message}`, { cause });
  }
}

async function writeText(engine: Engine, context: TaskContext, options: SqlOptions): Promise<void> {
  const { output, scratchDir, task } = context;
  const format = options.output ?? 'ndjson';
  const path = join(scratchDir, 'result');
  const header = options.header && task === 0 && context.isFinal !== false;
  const form = {
    csv: `FORMAT csv, HEADER ${String(header)}`,
    ndjson: 'FORMAT json',
    parquet: 'FORMAT parquet, COMPRESSION zstd',
  }[format];
  await asked(() => engine.run(`COPY (\n${options.query}\n) TO ${sqlText(path)} (${form})`));
  for await (const bytes of createReadStream(path) as AsyncIterable<Buffer>) await output.write(bytes);
}

async function sendPartitions(engine: Engine, context: TaskContext, options: SqlOptions): Promise<void> {
  const { output, scratchDir, partitions, task } = context;
  const { query, partitionBy } = options;
  if (partitions > 1 && partitionBy === undefined)
    throw new BadInputError('options.partitionBy must name the columns by which rows go to the next stage');
  const keys = (partitionBy ?? []).map(sqlName).join(', ');
  const place = keys === '' ? '0' : `hash(${keys}) % ${String(partitions)}`;
  const dir = join(scratchDir, 'partitions');
  const empty = join(scratchDir, 'empty.parquet');
  const form = 'FORMAT parquet, COMPRESSION lz4';
  await asked(async () => {
    await engine.run(
      `COPY (SELECT *, (${place})::INTEGER AS ${sqlName(partitionColumn)} FROM (\n${query}\n)) TO ${sqlText(dir)} (${form}, PARTITION_BY (${sqlName(partitionColumn)}))`,
    );
    // Whoever gets no rows must know the columns all the same.
    await engine.run(`COPY (SELECT * FROM (\n${query}\n) LIMIT 0) TO ${sqlText(empty)} (${form})`);
  });
  for (let partition = 0; partition < partitions; partition++) {
    await sendFile(output, empty, { task, file: 0, partition });
    let file = 1;
    const place = join(dir, `${encodeURIComponent(partitionColumn)}=${String(partition)}`);
    const names = existsSync(place) ? (await readdir(place)).toSorted() : [];
    for (const name of names) await sendFile(output, join(place, name), { task, file: file++, partition });
  }
}
