import type { Plot, PlotPoint } from '../../experiments/experiment.ts';
import { type Axis, axisOver } from './axis.ts';
import { element, label, picture } from './svg.ts';

const size = { width: 760, height: 440 };
const area = { left: 70, right: 580, top: 50, bottom: 370 };
/** Told apart by people who see colours differently too. Source: Okabe and Ito. */
const colours = [
  '#0072b2',
  '#e69f00',
  '#009e73',
  '#cc79a7',
  '#d55e00',
  '#56b4e9',
  '#f0e442',
  '#000000',
  '#999999',
  '#7b3294',
  '#8c510a',
  '#01665e',
];
const colourOf = (index: number): string => colours[index % colours.length] ?? '#000000';
const longestName = 26;

/** A plot as one SVG document: the same bytes for the same plot. */
export function drawPlot(plot: Plot): string {
  const points = plot.series.flatMap((series) => series.points);
  const y = axisOver(
    points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]),
    { from: area.bottom, to: area.top, fromZero: true },
  );
  const body = plot.kind === 'lines' ? lines(plot, y) : bars(plot, y);
  return picture(size, plot.title, [
    label(plot.title, area.left, 28, { 'font-size': 15, 'font-weight': 'bold' }),
    ...valueAxis(y, plot.yLabel),
    ...body,
    label(plot.xLabel, (area.left + area.right) / 2, size.height - 14, { 'text-anchor': 'middle' }),
    ...legend(plot),
  ]);
}

function valueAxis(y: Axis, title: string): string[] {
  const middle = (area.top + area.bottom) / 2;
  return [
    ...y.ticks.flatMap((tick) => [
      element('line', {
        x1: area.left,
        x2: area.right,
        y1: y.place(tick),
        y2: y.place(tick),
        stroke: tick === 0 ? '#222' : '#ddd',
      }),
      label(String(tick), area.left - 8, y.place(tick) + 4, { 'text-anchor': 'end' }),
    ]),
    label(title, 18, middle, { 'text-anchor': 'middle', transform: `rotate(-90 18 ${middle})` }),
  ];
}

/** The interval of a point, where it has one. */
function whisker({ low, high }: PlotPoint, x: number, y: Axis, colour: string): string[] {
  if (low === undefined || high === undefined || low === high) return [];
  const line = (x1: number, y1: number, x2: number, y2: number): string =>
    element('line', { x1, y1, x2, y2, stroke: colour, 'stroke-width': 1.2 });
  const [bottom, top] = [y.place(low), y.place(high)];
  return [line(x, bottom, x, top), line(x - 3, bottom, x + 3, bottom), line(x - 3, top, x + 3, top)];
}

function lines({ series }: Plot, y: Axis): string[] {
  const numbers = series.flatMap(({ points }) => points.map(({ x }) => Number(x)));
  const x = axisOver(numbers, { from: area.left, to: area.right, fromZero: false });
  const marks = x.ticks.flatMap((tick) => [
    element('line', {
      x1: x.place(tick),
      x2: x.place(tick),
      y1: area.bottom,
      y2: area.bottom + 5,
      stroke: '#222',
    }),
    label(String(tick), x.place(tick), area.bottom + 20, { 'text-anchor': 'middle' }),
  ]);
  const curves = series.flatMap(({ points }, index) => {
    const colour = colourOf(index);
    const places = points.map((point) => ({ point, left: x.place(Number(point.x)), top: y.place(point.y) }));
    return [
      element('polyline', {
        points: places.map(({ left, top }) => `${left.toFixed(1)},${top.toFixed(1)}`).join(' '),
        fill: 'none',
        stroke: colour,
        'stroke-width': 2,
      }),
      ...places.flatMap(({ point, left, top }) => [
        element('circle', { cx: left, cy: top, r: 3, fill: colour }),
        ...whisker(point, left, y, colour),
      ]),
    ];
  });
  return [...marks, ...curves];
}

function bars({ series }: Plot, y: Axis): string[] {
  const groups = [...new Set(series.flatMap(({ points }) => points.map(({ x }) => String(x))))];
  const groupWidth = (area.right - area.left) / Math.max(1, groups.length);
  const barWidth = (groupWidth * 0.8) / Math.max(1, series.length);
  const names = groups.map((group, place) => {
    const [left, top] = [area.left + (place + 0.5) * groupWidth, area.bottom + 20];
    // Names that would run into each other are turned.
    const isTurned = groups.some((name) => name.length * 6.5 > groupWidth);
    return label(
      group.slice(0, longestName),
      left,
      top,
      isTurned
        ? { 'text-anchor': 'end', transform: `rotate(-20 ${left} ${top})`, 'font-size': 11 }
        : { 'text-anchor': 'middle' },
    );
  });
  const columns = series.flatMap(({ points }, index) =>
    points.flatMap((point) => {
      const left =
        area.left + groups.indexOf(String(point.x)) * groupWidth + groupWidth * 0.1 + index * barWidth;
      const [top, zero] = [y.place(point.y), y.place(0)];
      return [
        element('rect', {
          x: left,
          y: Math.min(top, zero),
          width: Math.max(1, barWidth - 1),
          height: Math.abs(zero - top),
          fill: colourOf(index),
        }),
        ...whisker(point, left + barWidth / 2, y, '#222'),
      ];
    }),
  );
  return [...columns, ...names];
}

function legend({ series }: Plot): string[] {
  return series.flatMap(({ name }, index) => {
    const top = area.top + index * 20;
    return [
      element('rect', { x: area.right + 20, y: top, width: 12, height: 12, fill: colourOf(index) }),
      label(name.slice(0, longestName), area.right + 38, top + 10),
    ];
  });
}
