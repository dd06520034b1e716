import type { PlanResponse } from '../contracts/plans.ts';
import { formatDollars, formatDuration, oneLine, plural } from './format.ts';
import type { Style } from './style.ts';
import { type Column, renderTable } from './table.ts';

const right = (heading: string): Column => ({ heading, align: 'right' });

/** A plan for people: what it rests on, a line for each allocation, and which is the cheapest that meets the deadline. */
export function renderPlan(plan: PlanResponse, style: Style): readonly string[] {
  const { basis, deadlineMs, budgetDollars, allocations, cheapest, prices } = plan;
  const rests = `${plan.name} rests on ${oneLine(basis.says)}`;
  if (allocations.length === 0) return [rests, 'no forecast'];
  const columns = [
    ...['slots', 'half in', '90 % in', '95 % in', '99 % in'].map(right),
    ...(deadlineMs === null ? [] : [right('in time')]),
    right('dollars'),
    right('95 % below'),
    { heading: '', align: 'left' } as const,
  ];
  const rows = allocations.map((row) => {
    const { p50, p90, p95, p99 } = row.completionMs;
    const notes = [
      ...(row.isCheapest ? ['cheapest that meets the deadline at 95 %'] : []),
      ...(row.isWithinBudget === false ? ['over the budget'] : []),
    ];
    return [
      String(row.slots),
      ...[p50, p90, p95, p99].map(formatDuration),
      ...(deadlineMs === null ? [] : [`${((row.deadlineProbability ?? 0) * 100).toFixed(1)} %`]),
      ...[row.dollars, row.dollarsP95].map(formatDollars),
      notes.join('; '),
    ];
  });
  const bounds = [
    ...(deadlineMs === null ? [] : [`deadline ${formatDuration(deadlineMs)}`]),
    ...(budgetDollars === null ? [] : [`budget ${formatDollars(budgetDollars)}`]),
  ];
  const changed = prices.overridden.length === 0 ? '' : `, with ${prices.overridden.join(', ')} as given`;
  return [
    rests,
    ...(bounds.length === 0 ? [] : [bounds.join(', ')]),
    '',
    ...renderTable(columns, rows, style.heading),
    '',
    ...(deadlineMs !== null && cheapest === null ? ['no allocation meets the deadline at 95 %'] : []),
    `${plural(plan.tasks, 'task')}, ${plural(plan.simulatedRuns, 'simulated run')} of each; prices of ${prices.region}, ${prices.asOf}${changed}`,
  ];
}
