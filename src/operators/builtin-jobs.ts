import { InvalidInputError } from '../contracts/errors.ts';
import type {
  DeadlineTerms,
  JobSpecInput,
  OnBudget,
  SourceFormat,
  WorkerSize,
} from '../contracts/job-spec.ts';
import type { PolicyName } from '../contracts/policy-names.ts';
import { limits } from '../contracts/limits.ts';
import type { AggregateSpec } from './groupby-options.ts';

/** Names of the jobs that need no spec, as the command line takes them. */
export const builtinJobNames = ['wordcount', 'grep', 'sort', 'groupby', 'join'] as const;
export type BuiltinJobName = (typeof builtinJobNames)[number];

/** What a built-in job may be told. Which of them a job needs, `builtinJob` says. */
export interface BuiltinJobOptions extends DeadlineTerms {
  /** Objects, or prefixes that end in "/"; of a join the left-hand side. */
  readonly inputs: readonly string[];
  /** Right-hand side of a join. */
  readonly right?: readonly string[];
  /** Of the inputs of groupby and join; csv where it is left out. */
  readonly format?: SourceFormat;
  /** Of the right-hand side of a join; the same as `format` where it is left out. */
  readonly rightFormat?: SourceFormat;
  readonly header?: boolean;
  /** Csv: whether quoted fields may hold line ends. */
  readonly multiline?: boolean;
  readonly onBadRecord?: 'fail' | 'skip';
  readonly partitions?: number;
  readonly splitBytes?: number;
  readonly pattern?: string;
  readonly ignoreCase?: boolean;
  readonly invert?: boolean;
  /** grep: matches by frequency and not the lines that match. */
  readonly count?: boolean;
  readonly key?: string | readonly string[];
  readonly aggregates?: readonly AggregateSpec[];
  readonly leftKey?: string;
  readonly rightKey?: string;
  readonly leftColumns?: readonly string[];
  readonly rightColumns?: readonly string[];
  /** join: every task holds the whole right-hand side, and the left-hand side is not shuffled. */
  readonly broadcast?: boolean;
  /** Format of the rows that groupby and join write: as they read where it is left out. */
  readonly rows?: 'csv' | 'ndjson';
  /** Prefix of the output, `s3://bucket/prefix/`. */
  readonly output?: string;
  readonly deadline?: string;
  readonly budget?: number;
  readonly onBudget?: OnBudget;
  readonly guaranteedSlots?: number;
  readonly weight?: number;
  readonly policy?: PolicyName;
  readonly storage?: JobSpecInput['storage'];
  readonly worker?: { readonly kind?: 'lambda' | 'fargate'; readonly size?: WorkerSize };
}

type Stages = JobSpecInput['stages'];
type Source = Extract<Stages[number]['inputs'][number], { s3: string[] }>;

/**
 * The spec of a built-in job: `wordcount`, `grep` (with `pattern`; `count` for matches by frequency), `sort`,
 * `groupby` (with `key` and `aggregates`) and `join` (with `right`, `leftKey`, `rightKey`).
 *
 * @throws InvalidInputError where an option is missing or does not belong to the job; `details.field` names it.
 */
export function builtinJob(name: BuiltinJobName, options: BuiltinJobOptions): JobSpecInput {
  if (options.inputs.length === 0) throw missing(name, 'inputs', 'at least one s3:// object or prefix');
  refuseForeign(name, options);
  const stages = expand(name, options).map((stage) =>
    options.worker === undefined ? stage : { ...stage, worker: { ...options.worker } },
  );
  return {
    version: 1,
    name,
    stages,
    ...given('deadline', options.deadline),
    ...given('deadlineKind', options.deadlineKind),
    ...given('admission', options.admission),
    ...given('budget', options.budget),
    ...given('onBudget', options.onBudget),
    ...given('guaranteedSlots', options.guaranteedSlots),
    ...given('weight', options.weight),
    ...given('policy', options.policy),
    ...given('storage', options.storage),
    ...given('output', options.output),
  };
}

function expand(name: BuiltinJobName, options: BuiltinJobOptions): Stages {
  switch (name) {
    case 'wordcount':
      return wordcount(options);
    case 'grep':
      return options.count === true ? grepCount(options) : grep(options);
    case 'sort':
      return sort(options);
    case 'groupby':
      return groupby(options);
    case 'join':
      return options.broadcast === true ? broadcastJoin(options) : shuffleJoin(options);
  }
}

const wordcount = (options: BuiltinJobOptions): Stages => [
  {
    name: 'tokenize',
    operator: 'tokenize',
    inputs: [textSource(options)],
    partitions: partitionsOf(options),
  },
  { name: 'count', operator: 'sum-counts', inputs: [{ stage: 'tokenize', pattern: 'all-to-all' }] },
];

const grep = (options: BuiltinJobOptions): Stages => [
  { name: 'grep', operator: 'grep', options: patternOptions(options), inputs: [textSource(options)] },
];

const grepCount = (options: BuiltinJobOptions): Stages => {
  if (options.invert === true) {
    throw new InvalidInputError(
      'invert cannot go with count: lines that do not match have no matches to count',
      {
        field: 'invert',
      },
    );
  }
  return [
    {
      name: 'match',
      operator: 'grep-count',
      options: patternOptions(options),
      inputs: [textSource(options)],
      partitions: partitionsOf(options),
    },
    {
      name: 'count',
      operator: 'sum-counts',
      options: { ranked: true },
      inputs: [{ stage: 'match', pattern: 'all-to-all' }],
      partitions: 1,
    },
    { name: 'top', operator: 'top-counts', inputs: [{ stage: 'count', pattern: 'all-to-all' }] },
  ];
};

/** About so many sampled lines come from one split of `sort`. */
const samplesPerSplit = 1_000;
/** Places at which the input of `sort` is looked at for each partition of its output, and in all at least. */
const placesPerPartition = 16;
const leastPlaces = 64;
/** Splits that one task samples: it reads little of each. */
const splitsPerSample = 8;

const sort = (options: BuiltinJobOptions): Stages => {
  const partitions = partitionsOf(options);
  const splitBytes = options.splitBytes ?? limits.defaultSplitBytes;
  const everyBytes = Math.ceil(splitBytes / samplesPerSplit);
  const places = Math.max(leastPlaces, placesPerPartition * partitions);
  const sampledBytes = Math.min(limits.maxSplitBytes, splitsPerSample * splitBytes);
  return [
    {
      name: 'sample',
      operator: 'sample',
      options: { everyBytes, places },
      inputs: [textSource({ ...options, splitBytes: sampledBytes })],
    },
    {
      name: 'bounds',
      operator: 'bounds',
      options: { partitions },
      inputs: [{ stage: 'sample', pattern: 'many-to-one' }],
      tasks: 1,
    },
    {
      name: 'partition',
      operator: 'range-partition',
      inputs: [textSource(options), { stage: 'bounds', pattern: 'broadcast' }],
      partitions,
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'partition', pattern: 'all-to-all' }] },
  ];
};

const groupby = (options: BuiltinJobOptions): Stages => {
  if (options.key === undefined) throw missing('groupby', 'key', 'the column or columns to group by');
  if (options.aggregates === undefined) {
    throw missing('groupby', 'aggregates', 'a list such as [{ "op": "sum", "column": "price" }]');
  }
  const shared = {
    key: typeof options.key === 'string' ? options.key : [...options.key],
    aggregates: options.aggregates.map((aggregate) => ({ ...aggregate })),
  };
  return [
    {
      name: 'aggregate',
      operator: 'groupby-map',
      options: shared,
      inputs: [rowSource(options, options.inputs, options.format)],
      partitions: partitionsOf(options),
    },
    {
      name: 'group',
      operator: 'groupby-reduce',
      options: { ...shared, ...rowOutput(options) },
      inputs: [{ stage: 'aggregate', pattern: 'all-to-all' }],
    },
  ];
};

const shuffleJoin = (options: BuiltinJobOptions): Stages => {
  const { right, leftKey, rightKey } = joinSides(options);
  const side = (
    name: 'left' | 'right',
    uris: readonly string[],
    format: SourceFormat | undefined,
    key: string,
  ) => ({
    name,
    operator: 'join-map' as const,
    options: { ...joinKey(options, key), ...columnsOf(name, options) },
    inputs: [rowSource(options, uris, format)],
    partitions: partitionsOf(options),
  });
  return [
    side('left', options.inputs, options.format, leftKey),
    side('right', right, options.rightFormat ?? options.format, rightKey),
    {
      name: 'join',
      operator: 'join-reduce',
      options: { leftKey, rightKey, ...rowOutput(options) },
      inputs: [
        { stage: 'left', pattern: 'all-to-all' },
        { stage: 'right', pattern: 'all-to-all' },
      ],
    },
  ];
};

const broadcastJoin = (options: BuiltinJobOptions): Stages => {
  const { right, leftKey, rightKey } = joinSides(options);
  return [
    {
      name: 'right',
      operator: 'join-map',
      options: { ...joinKey(options, rightKey), ...columnsOf('right', options) },
      inputs: [rowSource(options, right, options.rightFormat ?? options.format)],
    },
    {
      name: 'join',
      operator: 'join-probe',
      options: {
        ...joinKey(options, leftKey),
        ...columnsOf('left', options),
        leftKey,
        rightKey,
        ...rowOutput(options),
      },
      inputs: [rowSource(options, options.inputs, options.format), { stage: 'right', pattern: 'broadcast' }],
    },
  ];
};

function joinSides(options: BuiltinJobOptions): {
  right: readonly string[];
  leftKey: string;
  rightKey: string;
} {
  const { right, leftKey } = options;
  if (right === undefined || right.length === 0) throw missing('join', 'right', 'the right-hand inputs');
  if (leftKey === undefined) throw missing('join', 'leftKey', 'a column of the left-hand side');
  const { output } = rowOutput(options);
  refuseUnnamed('leftColumns', output, options.format, options.leftColumns);
  refuseUnnamed('rightColumns', output, options.rightFormat ?? options.format, options.rightColumns);
  return { right, leftKey, rightKey: options.rightKey ?? leftKey };
}

/** NDJSON rows may each have other columns, and CSV must know them before its first row. */
function refuseUnnamed(
  field: 'leftColumns' | 'rightColumns',
  output: 'csv' | 'ndjson',
  format: SourceFormat | undefined,
  columns: readonly string[] | undefined,
): void {
  if (output === 'ndjson' || format !== 'ndjson' || columns !== undefined) return;
  throw missing(
    'join',
    field,
    'to write NDJSON rows as CSV their columns must be named; or write rows as ndjson',
  );
}

/** Keys of two formats are compared as text: CSV has no numbers. */
const joinKey = (options: BuiltinJobOptions, key: string): { key: string; keysAsText: boolean } => ({
  key,
  keysAsText: (options.format ?? 'csv') !== (options.rightFormat ?? options.format ?? 'csv'),
});

function columnsOf(side: 'left' | 'right', options: BuiltinJobOptions): { columns?: string[] } {
  const columns = side === 'left' ? options.leftColumns : options.rightColumns;
  return columns === undefined ? {} : { columns: [...columns] };
}

function patternOptions(options: BuiltinJobOptions): Record<string, string | boolean> {
  if (options.pattern === undefined) throw missing('grep', 'pattern', 'an extended regular expression');
  return {
    pattern: options.pattern,
    ...given('ignoreCase', options.ignoreCase),
    ...given('invert', options.invert),
  };
}

const rowOutput = (options: BuiltinJobOptions): { output: 'csv' | 'ndjson'; header: boolean } => ({
  output: options.rows ?? (options.format === 'ndjson' ? 'ndjson' : 'csv'),
  header: options.header ?? true,
});

const textSource = (options: BuiltinJobOptions): Source => ({
  s3: [...options.inputs],
  format: 'text',
  ...given('splitBytes', options.splitBytes),
});

function rowSource(
  options: BuiltinJobOptions,
  uris: readonly string[],
  format: SourceFormat = 'csv',
): Source {
  if (format === 'text') {
    throw new InvalidInputError('format must be csv or ndjson: rows have columns, lines of text have none', {
      field: 'format',
    });
  }
  return {
    s3: [...uris],
    format,
    ...given('header', options.header),
    ...(format === 'csv' ? given('multiline', options.multiline) : {}),
    ...given('onBadRecord', options.onBadRecord),
    ...given('splitBytes', options.splitBytes),
  };
}

const partitionsOf = (options: BuiltinJobOptions): number => options.partitions ?? limits.defaultPartitions;

const common = [
  ...(['inputs', 'splitBytes', 'output', 'policy', 'worker'] as const),
  ...([
    'deadline',
    'deadlineKind',
    'admission',
    'budget',
    'onBudget',
    'guaranteedSlots',
    'weight',
    'storage',
  ] as const),
] as const;
const ofRows = ['format', 'header', 'multiline', 'onBadRecord', 'rows', 'partitions'] as const;

/** Options besides the common ones that each job reads in at least one of its forms; any other would be silently ignored, so it is refused. */
const accepted: Readonly<Record<BuiltinJobName, readonly (keyof BuiltinJobOptions)[]>> = {
  wordcount: ['partitions'],
  grep: ['pattern', 'ignoreCase', 'invert', 'count', 'partitions'],
  sort: ['partitions'],
  groupby: [...ofRows, 'key', 'aggregates'],
  join: [
    ...ofRows,
    'right',
    'rightFormat',
    'leftKey',
    'rightKey',
    'leftColumns',
    'rightColumns',
    'broadcast',
  ],
};

function refuseForeign(name: BuiltinJobName, options: BuiltinJobOptions): void {
  const known: readonly string[] = [...common, ...accepted[name]];
  for (const [field, value] of Object.entries(options)) {
    if (value === undefined || known.includes(field)) continue;
    // Plain text is what these jobs read anyway.
    if (field === 'format' && value === 'text') continue;
    throw new InvalidInputError(`${name} takes no ${field}; it takes ${known.join(', ')}`, { field });
  }
}

const missing = (name: BuiltinJobName, field: string, right: string): InvalidInputError =>
  new InvalidInputError(`${name} needs ${field}: ${right}`, { field });

function given<Name extends string, T>(name: Name, value: T | undefined): Partial<Record<Name, T>> {
  // A computed key of a generic name widens to string; this is the same object under its true type.
  return value === undefined ? {} : ({ [name]: value } as Partial<Record<Name, T>>);
}
