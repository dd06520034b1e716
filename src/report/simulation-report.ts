import type { SimulationMetrics } from '../sim/metrics.ts';
import { formatCount, formatDollars, formatDuration, oneLine, plural } from './format.ts';
import type { Style } from './style.ts';
import { renderTable } from './table.ts';

const seconds = (value: number): string => formatDuration(value * 1_000);

/** What a simulation measured, for people. */
export function renderMetrics(metrics: SimulationMetrics, style: Style): readonly string[] {
  const { completionS, bins, copies, slowestToMedian, deadlines } = metrics;
  const right = ['jobs', 'mean', 'median', '95 %'].map((heading) => ({ heading, align: 'right' as const }));
  const rows = bins.map(({ tasks, jobs, meanS, p50S, p95S }) => [
    tasks,
    formatCount(jobs),
    seconds(meanS),
    seconds(p50S),
    seconds(p95S),
  ]);
  // Of none that succeeded there is no time to tell.
  const took = (value: number): string => (metrics.failed < metrics.jobs ? seconds(value) : '-');
  return [
    `${style.heading(metrics.policy)}, seed ${metrics.seed}: ${plural(metrics.jobs, 'job')}${metrics.failed === 0 ? '' : style.bad(`, ${formatCount(metrics.failed)} failed`)}`,
    ...(metrics.error === undefined ? [] : [`the first failed: ${oneLine(metrics.error)}`]),
    '',
    `completion  mean ${took(completionS.mean)}, median ${took(completionS.p50)}, 90 % ${took(completionS.p90)}, 95 % ${took(completionS.p95)}, 99 % ${took(completionS.p99)}`,
    `slots       ${formatCount(Math.round(metrics.slotSeconds))} s used, ${formatCount(Math.round(metrics.wastedSlotSeconds))} s of them wasted`,
    `copies      ${formatCount(copies.started)} started, ${formatCount(copies.won)} won`,
    `stragglers  slowest over median task: median stage ${slowestToMedian.p50.toFixed(2)}, 95 % ${slowestToMedian.p95.toFixed(2)}`,
    ...(deadlines.met + deadlines.missed === 0
      ? []
      : [`deadlines   ${formatCount(deadlines.met)} met, ${formatCount(deadlines.missed)} missed`]),
    `cost        ${formatDollars(metrics.dollars)}`,
    '',
    ...renderTable([{ heading: 'tasks', align: 'left' }, ...right], rows, style.heading),
  ];
}
