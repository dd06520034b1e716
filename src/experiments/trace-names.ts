import { TRACE_FORMATS, type TraceFormat } from '../traces/trace-formats.ts';

/** Public traces by name: one of each format, and the two of Yahoo's that come as Google's does. */
export const traceNames = [...TRACE_FORMATS, 'yahoo1', 'yahoo2'] as const;

/** Executors with which the queries of `tpch` ran a second time and oftener; `tpch` itself is the run with 20. */
export const tpchCounts = [2, 5, 10, 40, 50, 60, 80, 100] as const;
/** The same queries with other executor counts. */
export type TpchRunName = `tpch-${(typeof tpchCounts)[number]}`;
export type TraceName = (typeof traceNames)[number] | TpchRunName;

const isTpchRun = (name: TraceName): name is TpchRunName => name.startsWith('tpch-');

/** How a trace is written. */
export const traceFormatOf = (name: TraceName): TraceFormat =>
  name === 'yahoo1' || name === 'yahoo2' ? 'hawk' : isTpchRun(name) ? 'tpch' : name;
