import type { PlanAllocation, PlanResponse } from '../../contracts/plans.ts';
import { type Axis, axisOver } from './axis.ts';
import { element, label, picture } from './svg.ts';

const size = { width: 760, height: 620 };
const times = { left: 80, right: 580, top: 70, bottom: 330 };
const costs = { left: 80, right: 580, top: 400, bottom: 550 };
/** Told apart by people who see colours differently too. Source: Okabe and Ito. */
const colour = {
  time: '#0072b2',
  band: '#cfe3f1',
  late: '#e69f00',
  bound: '#d55e00',
  best: '#009e73',
  cost: '#9ab8cc',
};

/** Lengths of time that an axis names, in seconds. */
const marks = [
  ...[0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 18_000, 43_200],
  ...[86_400, 172_800, 604_800, 2_592_000, 31_536_000],
];

const nameOf = (seconds: number): string =>
  seconds < 60
    ? `${String(seconds)} s`
    : seconds < 3_600
      ? `${String(seconds / 60)} min`
      : seconds < 86_400
        ? `${String(seconds / 3_600)} h`
        : `${String(seconds / 86_400)} d`;

/** An axis of times by their logarithm, in seconds: on one slot a job takes hundreds of times as long as on many. */
function timeAxis(seconds: readonly number[]): Axis {
  const known = seconds.filter((each) => each > 0);
  const [least, most] = [Math.min(1e9, ...known), Math.max(0.001, ...known)];
  const first = marks.findLast((mark) => mark <= least) ?? least / 2;
  const found = marks.find((mark) => mark >= most) ?? most;
  const last = found > first ? found : first * 10;
  const [low, high] = [Math.log(first), Math.log(last)];
  return {
    ticks: marks.filter((mark) => mark >= first && mark <= last),
    place: (value) =>
      times.bottom + ((Math.log(Math.max(value, first)) - low) / (high - low)) * (times.top - times.bottom),
  };
}

/** Allocations stand side by side, as far apart as their neighbours are. */
const placeOf = (index: number, count: number): number =>
  times.left + ((index + 0.5) * (times.right - times.left)) / Math.max(1, count);

function rules(axis: Axis, area: typeof times, title: string, name: (tick: number) => string): string[] {
  const middle = (area.top + area.bottom) / 2;
  return [
    ...axis.ticks.flatMap((tick) => [
      element('line', {
        ...{ x1: area.left, x2: area.right, y1: axis.place(tick), y2: axis.place(tick) },
        stroke: tick === axis.ticks[0] ? '#222' : '#ddd',
      }),
      label(name(tick), area.left - 8, axis.place(tick) + 4, { 'text-anchor': 'end' }),
    ]),
    label(title, 18, middle, { 'text-anchor': 'middle', transform: `rotate(-90 18 ${middle})` }),
  ];
}

const path = (points: readonly (readonly [number, number])[]): string =>
  points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');

/** A bound across a panel: what is beyond it is too late, or too dear. */
const bound = (y: number, area: typeof times): string =>
  element('line', {
    ...{ x1: area.left, x2: area.right, y1: y, y2: y },
    ...{ stroke: colour.bound, 'stroke-width': 2, 'stroke-dasharray': '7 4' },
  });

function timePanel({ allocations, deadlineMs }: PlanResponse): string[] {
  const of = (ms: number): number => ms / 1_000;
  const y = timeAxis([
    ...allocations.flatMap(({ completionMs }) => [of(completionMs.p10), of(completionMs.p95)]),
    of(deadlineMs ?? 0),
  ]);
  const line = (pick: (row: PlanAllocation) => number): (readonly [number, number])[] =>
    allocations.map((row, index) => [placeOf(index, allocations.length), y.place(of(pick(row)))]);
  const band = [
    ...line(({ completionMs }) => completionMs.p90),
    ...line(({ completionMs }) => completionMs.p10).reverse(),
  ];
  const stroke = (pick: (row: PlanAllocation) => number, paint: string): string =>
    element('polyline', { points: path(line(pick)), fill: 'none', stroke: paint, 'stroke-width': 2 });
  return [
    ...rules(y, times, 'time to completion', nameOf),
    element('polygon', { points: path(band), fill: colour.band }),
    stroke(({ completionMs }) => completionMs.p50, colour.time),
    stroke(({ completionMs }) => completionMs.p95, colour.late),
    ...line(({ completionMs }) => completionMs.p50).map(([cx, cy]) =>
      element('circle', { cx, cy, r: 3, fill: colour.time }),
    ),
    ...(deadlineMs === null ? [] : [bound(y.place(of(deadlineMs)), times)]),
  ];
}

function costPanel({ allocations, budgetDollars }: PlanResponse): string[] {
  const count = allocations.length;
  // A budget that is far beyond leaves nothing to be seen of the costs.
  const most = Math.max(...allocations.map(({ dollarsP95 }) => dollarsP95));
  const isShown = budgetDollars !== null && budgetDollars <= 3 * most;
  const values = [...allocations.map(({ dollarsP95 }) => dollarsP95), ...(isShown ? [budgetDollars] : [])];
  // Fractions of a cent are no round numbers of dollars.
  const scale = 10 ** Math.max(0, 3 - Math.ceil(Math.log10(Math.max(most, 1e-9))));
  const y = axisOver(
    values.map((value) => value * scale),
    { from: costs.bottom, to: costs.top, fromZero: true },
  );
  const at = (dollars: number): number => y.place(dollars * scale);
  const width = Math.min(40, ((costs.right - costs.left) / Math.max(1, count)) * 0.7);
  const digits = Math.max(0, Math.ceil(-Math.log10(Math.max(most, 1e-9))) + 2);
  const bars = allocations.flatMap(({ slots, dollars, dollarsP95, isCheapest }, index) => {
    const x = placeOf(index, count);
    return [
      element('rect', {
        ...{ x: x - width / 2, y: at(dollars), width, height: costs.bottom - at(dollars) },
        fill: isCheapest ? colour.best : colour.cost,
      }),
      element('line', {
        x1: x,
        x2: x,
        y1: at(dollars),
        y2: at(dollarsP95),
        stroke: '#222',
        'stroke-width': 1.2,
      }),
      label(String(slots), x, costs.bottom + 18, {
        ...{ 'text-anchor': 'middle', 'font-size': count > 14 ? 10 : 12 },
        'font-weight': isCheapest ? 'bold' : undefined,
      }),
    ];
  });
  return [
    ...rules(y, costs, 'dollars', (tick) => `$${(tick / scale).toFixed(digits)}`),
    ...bars,
    ...(isShown ? [bound(at(budgetDollars), costs)] : []),
  ];
}

/** A stripe behind both panels where the allocation lies that is marked. */
function stripe({ allocations }: PlanResponse): string[] {
  const index = allocations.findIndex(({ isCheapest }) => isCheapest);
  if (index < 0) return [];
  const width = (times.right - times.left) / allocations.length;
  const x = placeOf(index, allocations.length) - width / 2;
  return [element('rect', { x, y: times.top, width, height: costs.bottom - times.top, fill: '#e3f3ed' })];
}

function legend({ deadlineMs, budgetDollars, cheapest }: PlanResponse): string[] {
  const entries: readonly (readonly [string, string])[] = [
    [colour.time, 'half of the runs'],
    [colour.late, '95 of 100 runs'],
    [colour.band, '10 to 90 of 100'],
    [colour.cost, 'dollars; line: 95 %'],
    ...(deadlineMs === null && budgetDollars === null ? [] : [[colour.bound, 'deadline, budget'] as const]),
    ...(cheapest === null ? [] : [[colour.best, `cheapest in time: ${String(cheapest)}`] as const]),
  ];
  return entries.flatMap(([fill, name], index) => [
    element('rect', { x: times.right + 18, y: times.top + index * 22, width: 12, height: 12, fill }),
    label(name, times.right + 36, times.top + index * 22 + 10),
  ]);
}

/**
 * A plan as one SVG document, the same bytes for the same plan: time above dollars by slots, with the deadline, the budget,
 * and the cheapest allocation that meets the deadline. Where nothing is known it says so.
 */
export function drawPlan(plan: PlanResponse): string {
  const title = `What ${plan.name} is expected to take and cost`;
  const head = [
    label(title, times.left, 28, { 'font-size': 15, 'font-weight': 'bold' }),
    label(`rests on ${plan.basis.says}`.slice(0, 110), times.left, 48, { fill: '#555', 'font-size': 11 }),
  ];
  if (plan.allocations.length === 0) {
    const middle = (size.height - 20) / 2;
    return picture(size, title, [
      ...head,
      label('no forecast: nothing is known of jobs like it', times.left, middle),
    ]);
  }
  return picture(size, title, [
    ...head,
    ...stripe(plan),
    ...timePanel(plan),
    ...costPanel(plan),
    label('slots', (costs.left + costs.right) / 2, size.height - 18, { 'text-anchor': 'middle' }),
    ...legend(plan),
  ]);
}
