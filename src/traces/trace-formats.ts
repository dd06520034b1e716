/** Names of the trace formats, as `outrider simulate --format` takes them. */
export const TRACE_FORMATS = [
  'swim',
  'coflow',
  'tpch',
  'alibaba',
  'alibaba2017',
  'rumen',
  'spark',
  'hawk',
] as const;
export type TraceFormat = (typeof TRACE_FORMATS)[number];

/** Whether `name` is one of `TRACE_FORMATS`. */
export const isTraceFormat = (name: string): name is TraceFormat =>
  TRACE_FORMATS.some((format) => format === name);

/** What a format records, and so what a generator must add before a simulation. */
export interface TraceContents {
  readonly title: string;
  readonly arrivals: boolean;
  /** `attempt`: every attempt timed; `task`: every task; `stage`: one time for all tasks of a stage. */
  readonly durations: 'attempt' | 'task' | 'stage' | 'none';
  /** Whether tasks differ in time by more than their work, as recorded. */
  readonly stragglers: boolean;
  /** `partial`: of some tasks or some ends. */
  readonly bytes: 'all' | 'partial' | 'none';
  /** Whether tasks are recorded, rather than derived from bytes or merged. */
  readonly tasks: boolean;
  readonly edges: boolean;
  readonly places: 'node' | 'zone' | 'none';
}

/** Contents of each format. */
export const TRACE_CONTENTS: Readonly<Record<TraceFormat, TraceContents>> = {
  swim: {
    title: 'Facebook Hadoop 2009 (SWIM)',
    arrivals: true,
    durations: 'none',
    stragglers: false,
    bytes: 'all',
    tasks: false,
    edges: true,
    places: 'none',
  },
  coflow: {
    title: 'Facebook 2010 shuffles by rack',
    arrivals: true,
    durations: 'none',
    stragglers: false,
    bytes: 'partial',
    tasks: false,
    edges: true,
    places: 'zone',
  },
  tpch: {
    title: 'TPC-H on Spark',
    arrivals: false,
    durations: 'task',
    stragglers: true,
    bytes: 'none',
    tasks: true,
    edges: true,
    places: 'none',
  },
  alibaba: {
    title: 'Alibaba 2018 batch DAGs',
    arrivals: false,
    durations: 'stage',
    stragglers: false,
    bytes: 'none',
    tasks: true,
    edges: true,
    places: 'none',
  },
  alibaba2017: {
    title: 'Alibaba 2017 batch table',
    arrivals: true,
    durations: 'stage',
    stragglers: false,
    bytes: 'none',
    tasks: true,
    edges: false,
    places: 'none',
  },
  rumen: {
    title: 'Yahoo Hadoop 2009 with attempts',
    arrivals: true,
    durations: 'attempt',
    stragglers: true,
    bytes: 'partial',
    tasks: true,
    edges: true,
    places: 'node',
  },
  spark: {
    title: 'Big Data Benchmark on Spark',
    arrivals: false,
    durations: 'attempt',
    stragglers: true,
    bytes: 'partial',
    tasks: true,
    edges: true,
    places: 'node',
  },
  hawk: {
    title: 'Yahoo and Google tasks (Hawk)',
    arrivals: true,
    durations: 'task',
    stragglers: false,
    bytes: 'none',
    tasks: true,
    edges: false,
    places: 'none',
  },
};
