import type { SourceFormat } from '../contracts/job-spec.ts';
import type { Context, Key } from './context.ts';

/** A function of the user's, as the graph holds it: types are those of the builder. */
export type RecordFunction<Result> = (record: unknown, context: Context) => Result;

/** The input that `--input` gives. */
export const mainInput = 'input';

export interface SourceNode {
  readonly kind: 'source';
  readonly format: SourceFormat;
  /** Files beside the job file, or `s3://` addresses; where there are none, the command line names them under `input`. */
  readonly paths: readonly string[];
  readonly input: string;
  readonly header: boolean;
  /** Whether fields hold line ends, so that files are not cut. */
  readonly multiline: boolean;
  readonly onBadRecord: 'fail' | 'skip';
  readonly splitBytes?: number;
  /** Columns that must be there; none where the job did not say. */
  readonly columns: readonly string[];
}

export type RecordwiseNode =
  | { readonly kind: 'map'; readonly parent: DatasetNode; readonly fn: RecordFunction<unknown> }
  | { readonly kind: 'flatMap'; readonly parent: DatasetNode; readonly fn: RecordFunction<Iterable<unknown>> }
  | { readonly kind: 'filter'; readonly parent: DatasetNode; readonly fn: RecordFunction<unknown> };

export interface KeyedNode {
  readonly parent: DatasetNode;
  readonly key: RecordFunction<Key>;
}

export interface ReduceNode {
  readonly kind: 'reduce';
  readonly keyed: KeyedNode;
  readonly fn: (left: unknown, right: unknown) => unknown;
}

export interface AggregateNode {
  readonly kind: 'aggregate';
  readonly keyed: KeyedNode;
  readonly zero: () => unknown;
  readonly add: (sum: unknown, value: unknown, context: Context) => unknown;
  /** Absent where partial sums cannot be put together: then every value is shuffled. */
  readonly merge?: (left: unknown, right: unknown) => unknown;
}

export interface GroupNode {
  readonly kind: 'group';
  readonly keyed: KeyedNode;
}

export interface JoinNode {
  readonly kind: 'join';
  readonly left: KeyedNode;
  readonly right: KeyedNode;
  readonly how: 'inner' | 'left';
  readonly broadcast: boolean;
}

export interface SortNode {
  readonly kind: 'sort';
  readonly parent: DatasetNode;
  readonly by: RecordFunction<Key>;
  readonly descending: boolean;
  /** Parts of the result, where the job says. */
  readonly parts?: number;
}

export interface TopNode {
  readonly kind: 'top';
  readonly parent: DatasetNode;
  readonly size: number;
  readonly by: RecordFunction<Key>;
}

/** What records come from. */
export type DatasetNode =
  SourceNode | RecordwiseNode | ReduceNode | AggregateNode | GroupNode | JoinNode | SortNode | TopNode;

/** What a job writes. */
export type SinkNode =
  | { readonly kind: 'text'; readonly parent: DatasetNode; readonly format?: RecordFunction<string> }
  | { readonly kind: 'ndjson'; readonly parent: DatasetNode }
  | {
      readonly kind: 'csv';
      readonly parent: DatasetNode;
      readonly columns: readonly string[];
      readonly header: boolean;
    };
