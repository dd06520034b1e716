import { describe, expect, it } from 'vitest';
import type { Plot } from '../../../src/experiments/experiment.ts';
import { axisOver } from '../../../src/report/plots/axis.ts';
import { drawPlot } from '../../../src/report/plots/draw-plot.ts';

const plot: Plot = {
  name: 'p',
  kind: 'lines',
  title: 'Time & <waste>',
  xLabel: 'cap, %',
  yLabel: 'time, s',
  series: [
    {
      name: 'LATE',
      points: [
        { x: 10, y: 220, low: 210, high: 230 },
        { x: 20, y: 160 },
      ],
    },
  ],
};

/** Names of the elements of a picture; throws where tags are not closed in order or text is not escaped. */
function elements(svg: string): string[] {
  const open: string[] = [];
  const names: string[] = [];
  const body = svg.replace(/^<\?xml [^<>]*\?>\n/, '');
  for (const [, close, name = '', , own] of body.matchAll(
    /<(\/?)([a-z]+)((?: [a-zA-Z-]+="[^"<>]*")*)(\/?)>/g,
  )) {
    if (close === '/') expect(open.pop()).toBe(name);
    else names.push(name);
    if (close === '' && own === '') open.push(name);
  }
  expect(open).toEqual([]);
  expect(body.replace(/<[^<>]*>/g, '')).not.toMatch(/[<>]|&(?!amp;|lt;|gt;|quot;)/);
  return names;
}
const countOf = (svg: string, name: string): number => elements(svg).filter((each) => each === name).length;

describe('an axis', () => {
  it.each([
    [[0, 250], true, [0, 50, 100, 150, 200, 250]],
    [[2.5, 100], false, [0, 20, 40, 60, 80, 100]],
    [[-3, 9], true, [-4, -2, 0, 2, 4, 6, 8, 10]],
    [[], true, [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [[0], true, [0, 0.2, 0.4, 0.6, 0.8, 1]],
  ])('over %j has round ticks', (values, fromZero, ticks) => {
    expect(axisOver(values, { from: 0, to: 1, fromZero }).ticks.slice(0, ticks.length)).toEqual(ticks);
  });

  it('places its ends at the ends', () => {
    const axis = axisOver([0, 250], { from: 300, to: 50, fromZero: true });
    expect([axis.place(0), axis.place(125), axis.place(250)]).toEqual([300, 175, 50]);
  });
});

describe('a plot', () => {
  it('is one well-formed picture with its text escaped', () => {
    const svg = drawPlot(plot);
    expect(() => elements(svg)).not.toThrow();
    expect(svg).toContain('Time &amp; &lt;waste&gt;');
    expect(countOf(svg, 'circle')).toBe(2);
  });

  it('has a bar for each point, upwards and downwards', () => {
    const bars: Plot = {
      ...plot,
      kind: 'bars',
      series: [
        {
          name: 'a',
          points: [
            { x: 'one', y: 5 },
            { x: 'two', y: -5 },
          ],
        },
      ],
    };
    // The background, two bars, one entry of the legend.
    expect(countOf(drawPlot(bars), 'rect')).toBe(4);
  });

  it('can be empty', () => {
    expect(() => elements(drawPlot({ ...plot, series: [] }))).not.toThrow();
    expect(() =>
      elements(drawPlot({ ...plot, kind: 'bars', series: [{ name: 'a', points: [] }] })),
    ).not.toThrow();
  });

  it('is the same for the same input', () => {
    expect(drawPlot(plot)).toBe(drawPlot(structuredClone(plot)));
  });
});
