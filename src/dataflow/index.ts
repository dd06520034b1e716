/*
 * What `import … from 'outrider'` gives: jobs as typed graphs, and below them the operator, what one stage runs.
 */
export { job, Job, type JobSettings } from './job.ts';
export { read, type CsvRow, type ReadCsvOptions, type ReadOptions, type ReadRowsOptions } from './read.ts';
export {
  Dataset,
  Keyed,
  Output,
  type Aggregation,
  type JoinOptions,
  type SortOptions,
  type Writers,
} from './dataset.ts';
export type { Context, Key, Logger, RecordInput } from './context.ts';
export type {
  Combine,
  KeyValue,
  LineBlock,
  Operator,
  Row,
  TaskContext,
  TaskInput,
  TaskOutput,
} from '../worker/operator.ts';
