import type { Operator } from '../worker/operator.ts';
import { hashBytes } from './count-table.ts';
import { LocalCounts, combineCounts } from './counts.ts';
import { compileEre } from './ere.ts';
import type { LineMatcher } from './ere.ts';
import { LineWriter, eachLine } from './line-writer.ts';
import { flagOption, onlyOptions, textOption } from './options.ts';
import type { Options } from './options.ts';

const matcherOf = (options: Options): LineMatcher =>
  compileEre(textOption(options, 'pattern', 'an extended regular expression'), {
    ignoreCase: flagOption(options, 'ignoreCase'),
  });

/**
 * The lines that match `pattern` (or, with `invert`, that do not), in input order and byte for byte, each with a
 * newline even if the input's last line has none.
 */
export const grep: Operator = {
  check(options) {
    onlyOptions(options, ['pattern', 'ignoreCase', 'invert']);
    flagOption(options, 'invert');
    matcherOf(options);
  },
  async run(context) {
    const { inputs, output, options } = context;
    const matcher = matcherOf(options);
    const isWanted = !flagOption(options, 'invert');
    const writer = new LineWriter(output);
    for (const input of inputs) {
      for await (const { bytes } of input.blocks()) {
        let lines = 0;
        await eachLine(bytes, (start, end) => {
          if (matcher.matches(bytes, start, end) !== isWanted) return undefined;
          lines++;
          return writer.line(bytes, start, end);
        });
        context.count('matched', lines);
      }
    }
    await writer.flush();
  },
};

/** Counts the texts that match `pattern`, those that `grep -o` prints: (text, count). */
export const grepCount: Operator = {
  check(options) {
    onlyOptions(options, ['pattern', 'ignoreCase']);
    matcherOf(options);
  },
  combiner: () => combineCounts,
  async run(context) {
    const { inputs, output, options } = context;
    const matcher = matcherOf(options);
    const counts = new LocalCounts(output);
    for (const input of inputs) {
      for await (const { bytes } of input.blocks()) {
        await eachLine(bytes, (start, end) => take(bytes, matcher.spans(bytes, start, end), counts));
      }
    }
    context.count('matches', counts.added);
    await counts.flush();
  },
};

type Spans = Iterator<readonly [start: number, end: number]>;

/** Counts the texts at `spans`; goes on later where the table is full. */
function take(bytes: Buffer, spans: Spans, counts: LocalCounts): Promise<void> | undefined {
  for (let span = spans.next(); span.done !== true; span = spans.next()) {
    const [from, to] = span.value;
    if (!counts.hasRoom(to - from)) return takeAfterFlush(bytes, span.value, spans, counts);
    counts.add(bytes, from, to, hashBytes(bytes, from, to));
  }
  return undefined;
}

async function takeAfterFlush(
  bytes: Buffer,
  [from, to]: readonly [number, number],
  spans: Spans,
  counts: LocalCounts,
): Promise<void> {
  await counts.flush();
  if (counts.hasRoom(to - from)) counts.add(bytes, from, to, hashBytes(bytes, from, to));
  else await counts.addLarge(bytes.subarray(from, to));
  await take(bytes, spans, counts);
}
