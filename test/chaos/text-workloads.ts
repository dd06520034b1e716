import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { coreutils, countWords } from '../support/coreutils.ts';
import type { Draw } from './draw.ts';
import { drawSplitBytes, drawTexts, laidEndToEnd, type Material } from './inputs.ts';
import { firstDifference, linesDiffer, type Workload } from './workload.ts';

const patterns = [
  'the',
  'a|ab',
  '^[^a]*$',
  '[0-9]+$',
  'caf.',
  '[[:space:]]',
  'b.*1',
  '(be|Ze)b?',
  'w{20,}',
  '^$',
];

const urisOf = (materials: readonly Material[], uriOf: (name: string) => string): string[] =>
  materials.map(({ name }) => uriOf(name));

/** Words and their counts, against tr, sort and uniq. */
export function wordcount(draw: Draw): Workload {
  const materials = drawTexts(draw);
  const options = { splitBytes: drawSplitBytes(draw, materials), partitions: draw.int(1, 5) };
  return {
    kind: 'wordcount',
    materials,
    stages: (uriOf) => builtinJob('wordcount', { inputs: urisOf(materials, uriOf), ...options }).stages,
    differs: (output) =>
      linesDiffer(output, Buffer.from(countWords(materials.map(({ plain }) => plain)), 'latin1')),
  };
}

/** All lines in order, against sort. */
export function sortLines(draw: Draw): Workload {
  const materials = drawTexts(draw);
  const options = { splitBytes: drawSplitBytes(draw, materials), partitions: draw.int(1, 5) };
  return {
    kind: 'sort',
    materials,
    stages: (uriOf) => builtinJob('sort', { inputs: urisOf(materials, uriOf), ...options }).stages,
    differs: (output) => firstDifference(output, coreutils('sort', [], laidEndToEnd(materials))),
  };
}

/** Lines that match, in the order of files, against grep. */
export function grep(draw: Draw): Workload {
  const materials = drawTexts(draw);
  const options = {
    splitBytes: drawSplitBytes(draw, materials),
    pattern: draw.pick(patterns),
    ignoreCase: draw.chance(0.3),
    invert: draw.chance(0.2),
  };
  const flags = ['-ahE', ...(options.ignoreCase ? ['-i'] : []), ...(options.invert ? ['-v'] : [])];
  return {
    kind: 'grep',
    materials,
    stages: (uriOf) => builtinJob('grep', { inputs: urisOf(materials, uriOf), ...options }).stages,
    differs: (output) =>
      firstDifference(output, coreutils('grep', [...flags, '-e', options.pattern], laidEndToEnd(materials))),
  };
}

/** Matches by falling frequency and then by their bytes, against grep -o. */
export function grepCount(draw: Draw): Workload {
  const materials = drawTexts(draw);
  const options = {
    splitBytes: drawSplitBytes(draw, materials),
    pattern: draw.pick(patterns),
    partitions: draw.int(1, 4),
  };
  const expected = (): Buffer => {
    const counts = new Map<string, number>();
    const found = coreutils('grep', ['-aohE', '-e', options.pattern], laidEndToEnd(materials));
    for (const match of found.toString('latin1').split('\n').slice(0, -1))
      counts.set(match, (counts.get(match) ?? 0) + 1);
    const ranked = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
    return Buffer.from(ranked.map(([text, count]) => `${text}\t${String(count)}\n`).join(''), 'latin1');
  };
  return {
    kind: 'grep --count',
    materials,
    stages: (uriOf) =>
      builtinJob('grep', { inputs: urisOf(materials, uriOf), count: true, ...options }).stages,
    differs: (output) => firstDifference(output, expected()),
  };
}
