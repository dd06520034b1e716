import { createHash } from 'node:crypto';
import { coreutils, countWords } from '../support/coreutils.ts';
import type { Draw } from './draw.ts';
import { drawSplitBytes, drawTexts, laidEndToEnd, type Material } from './inputs.ts';
import { linesDiffer, type Workload } from './workload.ts';

const upperCase = 'export LC_ALL=C; tr "a-z\\t" "A-Z " | sort';
/** Long enough that something can strike a task at work. */
const working = (draw: Draw): string => `sleep 0.${String(draw.int(1, 9))};`;
const upperCased = (materials: readonly Material[]): Buffer =>
  coreutils('tr', ['a-z\\t', 'A-Z '], laidEndToEnd(materials));

const source = (materials: readonly Material[], uriOf: (name: string) => string, splitBytes: number) => ({
  s3: materials.map(({ name }) => uriOf(name)),
  splitBytes,
});

/** One program over splits, and no other stage. */
export function program(draw: Draw): Workload {
  const materials = drawTexts(draw);
  const splitBytes = drawSplitBytes(draw, materials);
  const command = ['sh', '-c', working(draw) + upperCase];
  return {
    kind: 'exec',
    materials,
    stages: (uriOf) => [
      {
        name: 'shout',
        operator: 'exec',
        options: { command },
        inputs: [source(materials, uriOf, splitBytes)],
      },
    ],
    differs: (output) => linesDiffer(output, upperCased(materials)),
  };
}

/** Programs in two branches, shuffled and merged, or gathered by fewer tasks, or read one by one. */
export function graph(draw: Draw): Workload {
  const materials = drawTexts(draw);
  const splitBytes = drawSplitBytes(draw, materials);
  const partitions = draw.int(1, 4);
  const branches = ['one', 'two'].slice(0, draw.int(1, 2));
  const command = ['sh', '-c', working(draw) + upperCase];
  const last = draw.pick(['merge', 'gather', 'pass'] as const);
  const pattern = { merge: 'all-to-all', gather: 'many-to-one', pass: 'one-to-one' } as const;
  return {
    kind: `graph of ${String(branches.length)}, ${last}`,
    materials,
    stages: (uriOf) => [
      ...branches.map((name) => ({
        name,
        operator: 'exec' as const,
        options: { command },
        inputs: [source(materials, uriOf, splitBytes)],
        ...(last === 'merge' ? { partitions } : {}),
      })),
      {
        name: last,
        ...(last === 'merge'
          ? { operator: 'merge-lines' as const }
          : { operator: 'exec' as const, options: { command: ['cat'] } }),
        inputs: branches.map((stage) => ({ stage, pattern: pattern[last] })),
        ...(last === 'gather' ? { tasks: draw.fork('tasks').int(1, 2) } : {}),
      },
    ],
    differs: (output) => {
      const once = upperCased(materials);
      return linesDiffer(output, Buffer.concat(branches.map(() => once)));
    },
  };
}

/** Counted words that a program passes on: three stages, the last one reading one by one. */
export function countedChain(draw: Draw): Workload {
  const materials = drawTexts(draw);
  const splitBytes = drawSplitBytes(draw, materials);
  const partitions = draw.int(1, 4);
  return {
    kind: 'chain',
    materials,
    stages: (uriOf) => [
      { name: 'tokenize', operator: 'tokenize', partitions, inputs: [source(materials, uriOf, splitBytes)] },
      { name: 'count', operator: 'sum-counts', inputs: [{ stage: 'tokenize', pattern: 'all-to-all' }] },
      {
        name: 'pass',
        operator: 'exec',
        options: { command: ['sh', '-c', `${working(draw)} cat`] },
        inputs: [{ stage: 'count', pattern: 'one-to-one' }],
      },
    ],
    differs: (output) =>
      linesDiffer(output, Buffer.from(countWords(materials.map(({ plain }) => plain)), 'latin1')),
  };
}

/** What every bundle here does: the lines of its inputs in upper case, ASCII alone. */
const bundle = (mark: string, before: string, after: string): string => `
// ${mark}
export default {
  check() {},
  async run({ inputs, output, count }) {
    ${before}
    let lines = 0;
    for (const input of inputs) {
      for await (const { bytes } of input.blocks()) {
        const text = bytes.toString('latin1').replace(/[a-z\\t]/g, (c) => (c === '\\t' ? ' ' : c.toUpperCase()));
        if (text === '') continue;
        lines += text.split('\\n').length - 1;
        await output.write(Buffer.from(text.endsWith('\\n') ? text : text + '\\n', 'latin1'));
      }
    }
    count('lines', lines);
    ${after}
  },
};
`;

/** What a bundle might leave behind in the process that ran it: nobody else may notice. */
const poisons = [
  'Uint8Array.prototype.set = () => undefined;',
  'JSON.stringify = () => "{}";',
  'Map.prototype.get = () => undefined;',
  'globalThis.Buffer.concat = () => { throw new Error("poisoned"); };',
  'process.exit = () => undefined; process.env.AWS_ENDPOINT_URL_S3 = "http://127.0.0.1:1";',
];

/** A bundle of user code; a hostile one harms its own process, and its job may fail for that, but no other. */
export function userCode(draw: Draw, isHostile: boolean): Workload {
  const materials = drawTexts(draw);
  const splitBytes = drawSplitBytes(draw, materials);
  const pause = `await new Promise((resolve) => setTimeout(resolve, ${String(draw.int(50, 600))}));`;
  const code = Buffer.from(bundle(draw.name, pause, isHostile ? draw.pick(poisons) : ''));
  const sha256 = createHash('sha256').update(code).digest('hex');
  const bundled = { name: 'bundle.mjs', body: code, plain: code };
  const isMerged = draw.chance(0.5);
  return {
    kind: isHostile ? 'hostile code' : 'code',
    materials: [...materials, bundled],
    stages: (uriOf) => [
      {
        name: 'code',
        code: { s3: uriOf(bundled.name), sha256 },
        inputs: [source(materials, uriOf, splitBytes)],
        ...(isMerged ? { partitions: 2 } : {}),
      },
      ...(isMerged
        ? [
            {
              name: 'merge',
              operator: 'merge-lines' as const,
              inputs: [{ stage: 'code', pattern: 'all-to-all' as const }],
            },
          ]
        : []),
    ],
    differs: (output) => linesDiffer(output, upperCased(materials)),
    mayFail: isHostile,
  };
}
