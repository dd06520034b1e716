import { InvalidInputError } from '../../contracts/errors.ts';
import { isSource, type OperatorName, type StageInput, type StageSpec } from '../../contracts/job-spec.ts';
import { tableNames } from '../../contracts/table-names.ts';
import { type GraphStage, inputField } from './job-graph.ts';
import { partitionsOf } from './task-counts.ts';

/**
 * What an input must be: `rows`, objects of CSV or NDJSON; `table`, those or Parquet, or a stage of `sql`; `shuffled`, a stage
 * whose partitions come in order of key, all records of a key in one of them; `whole`, a stage that every task reads all of.
 */
type Need = 'rows' | 'table' | 'shuffled' | 'whole' | 'any';

/** What the records of a stage are. Operators that pass on what they read, and programs, may send any. */
type Kind = 'counts' | 'ranked' | 'groups' | 'sides' | 'samples' | 'bounds' | 'lines of rows' | 'tables';

interface OperatorInputs {
  /** Of each input; of exactly two, where there are two. */
  readonly needs: readonly [Need] | readonly [Need, Need];
  /** What those of its inputs that are stages must hold, where that is known of them. */
  readonly reads?: Kind;
  /** Why, behind the operator's name. */
  readonly why: string;
  /** What its two inputs are. */
  readonly pair?: string;
}

const merges = 'merges its inputs, which come in order of their keys so alone';
const sides = 'the left-hand side, then the right-hand side';

/** What each built-in operator needs of its inputs; of one that is not here: nothing. */
const inputsOf: Readonly<Partial<Record<OperatorName, OperatorInputs>>> = {
  'sum-counts': { needs: ['shuffled'], reads: 'counts', why: merges },
  'top-counts': { needs: ['shuffled'], reads: 'ranked', why: merges },
  'groupby-map': { needs: ['rows'], why: 'reads rows' },
  'groupby-reduce': { needs: ['shuffled'], reads: 'groups', why: merges },
  'join-map': { needs: ['rows'], why: 'reads rows' },
  'join-reduce': {
    needs: ['shuffled', 'shuffled'],
    reads: 'sides',
    why: 'joins rows of equal keys, which meet in one task so alone',
    pair: sides,
  },
  'join-probe': {
    needs: ['rows', 'whole'],
    reads: 'sides',
    why: 'looks each row of its first input up in all of its second',
    pair: sides,
  },
  'range-partition': {
    needs: ['any', 'whole'],
    reads: 'bounds',
    why: 'sends each line of its first input to its place between all bounds of its second',
    pair: 'the lines, then the bounds',
  },
  sql: { needs: ['table'], reads: 'tables', why: 'reads rows' },
};

/** Whether a stage reads rows of its sources; others read lines, whatever the format. Code may read either. */
export function readsRows({ operator }: Pick<StageSpec, 'operator'>): boolean {
  if (operator === undefined) return true;
  const [first] = inputsOf[operator]?.needs ?? [];
  return first === 'rows' || first === 'table';
}

const kinds: Readonly<Partial<Record<OperatorName, Kind>>> = {
  tokenize: 'counts',
  'grep-count': 'counts',
  'top-counts': 'counts',
  sample: 'samples',
  bounds: 'bounds',
  'groupby-map': 'groups',
  'groupby-reduce': 'lines of rows',
  'join-map': 'sides',
  'join-reduce': 'lines of rows',
  'join-probe': 'lines of rows',
};

/** Whose records an operator reads, for people. */
const senderNames: Readonly<Partial<Record<Kind, string>>> = {
  counts: '"tokenize", "grep-count" or "sum-counts" without "ranked"',
  ranked: '"sum-counts" with "ranked": true',
  groups: '"groupby-map"',
  sides: '"join-map"',
  bounds: '"bounds"',
  tables: '"sql" whose "output" is "parquet", as it is where it is left out',
};

/** What a stage sends to others; undefined where only its data could tell. */
function kindOf({ operator, options }: StageSpec): Kind | undefined {
  if (operator === 'sum-counts') return options['ranked'] === true ? 'ranked' : 'counts';
  // The text of a query is whatever it makes of its columns.
  if (operator === 'sql') return (options['output'] ?? 'parquet') === 'parquet' ? 'tables' : undefined;
  return operator === undefined ? undefined : kinds[operator];
}

const refusal = (field: string, message: string): InvalidInputError =>
  new InvalidInputError(`${field} ${message}`, { field });

/** Of an input that is not right, which of its fields, and what would be. */
function rightOf(need: Need, input: StageInput): readonly [field: string, right: string] | undefined {
  switch (need) {
    case 'any':
      return undefined;
    case 'rows':
      if (!isSource(input)) return ['', 'must be { "s3": […] } of the format "csv" or "ndjson"'];
      return ['csv', 'ndjson'].includes(input.format) ? undefined : ['.format', 'must be "csv" or "ndjson"'];
    case 'table':
      if (!isSource(input) || input.format !== 'text') return undefined;
      return ['.format', 'must be "csv", "ndjson" or "parquet"'];
    case 'shuffled':
    case 'whole': {
      const pattern = need === 'whole' ? 'broadcast' : 'all-to-all';
      if (isSource(input)) return ['', `must be another stage, read "${pattern}"`];
      return input.pattern === pattern ? undefined : ['.pattern', `must be "${pattern}"`];
    }
  }
}

/** The stages of a job, for those that read them. */
type Senders = ReadonlyMap<string, GraphStage>;

/** Whether a stage sends what a reader of that kind cannot use, whatever its data. */
function isOther(sender: StageSpec, reads: Kind): boolean {
  const kind = kindOf(sender);
  if (kind !== undefined) return kind !== reads;
  // Text may be anything; but no operator that passes lines on sends files of Parquet.
  return reads === 'tables' && sender.operator !== undefined && sender.operator !== 'exec';
}

/** Throws where an input is not what an operator needs. `field` is the input's. */
function checkInput(
  { need, field, input }: { readonly need: Need; readonly field: string; readonly input: StageInput },
  operator: OperatorName,
  { why, reads }: OperatorInputs,
  senders: Senders,
): void {
  const right = rightOf(need, input);
  if (right !== undefined) throw refusal(`${field}${right[0]}`, `${right[1]}: "${operator}" ${why}`);
  const sender = isSource(input) ? undefined : senders.get(input.stage)?.spec;
  if (need === 'any' || reads === undefined || sender === undefined || !isOther(sender, reads)) return;
  throw refusal(
    `${field}.stage`,
    `must be a stage of ${senderNames[reads] ?? reads}: "${operator}" reads what that sends`,
  );
}

/** Throws where a stage of `groupby-reduce` would take the groups that it reads for others. */
function checkGroups({ spec, index }: GraphStage, senders: Senders): void {
  const opsOf = ({ options }: StageSpec): string => {
    const list = Array.isArray(options['aggregates']) ? options['aggregates'] : [];
    return list.map((each) => (each as { op?: unknown } | null)?.op).join(', ');
  };
  const keysOf = ({ options: { key } }: StageSpec): number => (Array.isArray(key) ? key.length : 1);
  for (const { stage } of spec.inputs.flatMap((input) => (isSource(input) ? [] : [input]))) {
    const sender = senders.get(stage)?.spec;
    if (sender?.operator !== 'groupby-map') continue;
    // What they are called here is the names of the result alone.
    if (opsOf(sender) !== opsOf(spec))
      throw refusal(
        `stages[${index}].options.aggregates`,
        `must have the same "op"s as those of stage ${stage}, in order: ${opsOf(sender)}`,
      );
    if (keysOf(sender) !== keysOf(spec))
      throw refusal(
        `stages[${index}].options.key`,
        `must have as many columns as that of stage ${stage}: ${keysOf(sender)}`,
      );
  }
}

/**
 * Throws where the two sides of a join compare keys in different ways, so that those that are equal would not meet, or the join takes
 * other columns for the keys than its sides do: it would write a key twice, or leave out another column.
 */
function checkSides({ spec, index }: GraphStage, senders: Senders): void {
  const { operator, options } = spec;
  const senderOf = (input: StageInput | undefined): StageSpec | undefined => {
    const sender = input === undefined || isSource(input) ? undefined : senders.get(input.stage)?.spec;
    return sender?.operator === 'join-map' ? sender : undefined;
  };
  const [leftInput, rightInput] = spec.inputs;
  const left = operator === 'join-probe' ? spec : senderOf(leftInput);
  const right = senderOf(rightInput);
  for (const [name, side] of [['leftKey', left] as const, ['rightKey', right] as const]) {
    if (side === undefined || side.options['key'] === options[name]) continue;
    const whose = side === spec ? 'its own "key"' : `"key" of stage ${side.name}`;
    throw refusal(
      `stages[${index}].options.${name}`,
      `must be what ${whose} is, ${JSON.stringify(side.options['key'])}, not ${JSON.stringify(options[name])}`,
    );
  }
  const asText = (side: StageSpec): boolean => side.options['keysAsText'] === true;
  if (left === undefined || right === undefined || asText(left) === asText(right)) return;
  // Cells of CSV are texts whether or not a side says so.
  const lacking = asText(left) ? right : left;
  const rows = lacking === spec ? spec.inputs.slice(0, 1) : lacking.inputs;
  if (rows.every((input) => isSource(input) && input.format === 'csv')) return;
  const place = senders.get(right.name)?.index ?? index;
  throw refusal(
    `stages[${place}].options.keysAsText`,
    `must be ${asText(left)} in stage ${right.name}, as it is in stage ${left.name}: stage ${spec.name} joins the two, and keys that are equal would not meet`,
  );
}

const textsOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((each) => typeof each === 'string') ? value : undefined;

/** Names of the tables of a stage of `sql`. */
function tablesOf({ inputs, options }: StageSpec): readonly string[] {
  const stages = inputs.map((input) => (isSource(input) ? undefined : input.stage));
  return tableNames(stages, textsOf(options['tables']));
}

/** Throws where tables are named that a stage of `sql` does not have, two alike, or nobody could tell where its rows go. */
function checkTables(stage: GraphStage): void {
  const { spec, index } = stage;
  const { inputs, options } = spec;
  const at = `stages[${index}].options`;
  const tables = tablesOf(spec);
  if ((textsOf(options['tables']) ?? tables).length !== inputs.length)
    throw refusal(`${at}.tables`, `must be a list of ${inputs.length} names, one for each input`);
  // As DuckDB takes names.
  const lower = tables.map((name) => name.toLowerCase());
  const twice = tables.find((_, place) => lower.indexOf(lower[place] ?? '') !== place);
  if (twice !== undefined)
    throw refusal(`${at}.tables`, `must name each input differently: two are called "${twice}"`);
  for (const [name, types] of Object.entries(options['columns'] ?? {}) as [string, unknown][]) {
    const input = inputs[tables.indexOf(name)];
    if (input === undefined)
      throw refusal(`${at}.columns.${name}`, `must be the name of a table: ${tables.join(', ')}`);
    const isNdjson = isSource(input) && input.format === 'ndjson';
    if (!isNdjson && Object.keys(types ?? {}).length > 0)
      throw refusal(`${at}.columns.${name}`, 'is for NDJSON alone: cast the columns in the query');
  }
  if (partitionsOf(stage) > 1 && kindOf(spec) === 'tables' && options['partitionBy'] === undefined)
    throw refusal(
      `${at}.partitionBy`,
      'must name the columns by which rows go to the next stage, unless "partitions" is 1',
    );
}

/**
 * Checks that built-in operators get inputs that they can use: their number, formats and patterns, and what other stages send.
 * Where they do not, a worker would find out, or nobody: read otherwise than all-to-all, a word has several sums. Of `code` and
 * programs it asks nothing. Not part of the schema and the graph: jobs that were accepted before go on.
 *
 * @throws InvalidInputError with the field.
 */
export function checkOperatorInputs(graph: readonly GraphStage[]): void {
  const senders: Senders = new Map(graph.map((stage) => [stage.spec.name, stage]));
  for (const stage of graph) {
    const { operator, inputs } = stage.spec;
    const needed = operator === undefined ? undefined : inputsOf[operator];
    if (operator === undefined || needed === undefined) continue;
    const { needs, pair } = needed;
    if (needs.length === 2 && inputs.length !== 2)
      throw refusal(
        `stages[${stage.index}].inputs`,
        `must be two for "${operator}": ${pair ?? 'one and another'}`,
      );
    for (const [number, input] of inputs.entries()) {
      const need = needs[number] ?? needs[0];
      checkInput({ need, input, field: inputField(stage.index, number) }, operator, needed, senders);
    }
    if (operator === 'groupby-reduce') checkGroups(stage, senders);
    if (operator === 'join-reduce' || operator === 'join-probe') checkSides(stage, senders);
    if (operator === 'sql') checkTables(stage);
  }
}
