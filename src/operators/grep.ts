import { setImmediate as turn } from 'node:timers/promises';
import { BadRecordError } from '../worker/operator.ts';
import type { LineBlock, Operator } from '../worker/operator.ts';
import { hashBytes } from './count-table.ts';
import { LocalCounts, combineCounts } from './counts.ts';
import { compileEre, shownPattern } from './ere.ts';
import type { LineMatcher, Span } from './ere.ts';
import { TooManyStepsError } from './ere-references.ts';
import { LineWriter, eachLine } from './line-writer.ts';
import { flagOption, onlyOptions, textOption } from './options.ts';
import type { Options } from './options.ts';

const patternOf = (options: Options): string =>
  textOption(options, 'pattern', 'an extended regular expression');

const matcherOf = (options: Options): LineMatcher =>
  compileEre(patternOf(options), { ignoreCase: flagOption(options, 'ignoreCase') });

/** Lets heartbeats and orders have their turn within long work; throws the reason where the task was cancelled. */
async function rest(signal: AbortSignal): Promise<void> {
  await turn();
  signal.throwIfAborted();
}

/**
 * Calls `visit` with each line. Where the pattern takes too long for a line the error names file and line: a second
 * attempt would take as long.
 */
async function eachMatchable(
  { bytes, file, offset }: LineBlock,
  pattern: string,
  visit: (start: number, end: number) => Promise<void> | undefined,
): Promise<void> {
  let at = 0;
  try {
    await eachLine(bytes, (start, end) => {
      at = start;
      return visit(start, end);
    });
  } catch (cause) {
    if (!(cause instanceof TooManyStepsError)) throw cause;
    const place = `${file}: the line at byte ${String(offset + at)}`;
    throw new BadRecordError(`${place}: the pattern ${shownPattern(pattern)} ${cause.message}`, { cause });
  }
}

/**
 * The lines that match `pattern` (or, with `invert`, that do not), in input order and byte for byte, each with a
 * newline even if the input's last line has none.
 */
export const grep: Operator = {
  resumes: true,
  check(options) {
    onlyOptions(options, ['pattern', 'ignoreCase', 'invert']);
    flagOption(options, 'invert');
    matcherOf(options);
  },
  async run(context) {
    const { inputs, output, options, signal } = context;
    const matcher = matcherOf(options);
    const isWanted = !flagOption(options, 'invert');
    const writer = new LineWriter(output);
    for (const input of inputs) {
      for await (const block of input.blocks()) {
        const { bytes } = block;
        let lines = 0;
        const take = (doesMatch: boolean, start: number, end: number): Promise<void> | undefined => {
          if (doesMatch !== isWanted) return undefined;
          lines++;
          return writer.line(bytes, start, end);
        };
        const takeLater = async (start: number, end: number): Promise<void> => {
          let doesMatch: boolean | undefined;
          // Each round has its steps, and a line takes a bounded number of them.
          while (doesMatch === undefined) {
            await rest(signal);
            doesMatch = matcher.resume();
          }
          await take(doesMatch, start, end);
        };
        await eachMatchable(block, patternOf(options), (start, end) => {
          const doesMatch = matcher.matches(bytes, start, end);
          return doesMatch === undefined ? takeLater(start, end) : take(doesMatch, start, end);
        });
        context.count('matched', lines);
      }
    }
    await writer.flush();
  },
};

/** Counts the texts that match `pattern`, those that `grep -o` prints: (text, count). */
export const grepCount: Operator = {
  resumes: true,
  check(options) {
    onlyOptions(options, ['pattern', 'ignoreCase']);
    matcherOf(options);
  },
  combiner: () => combineCounts,
  async run(context) {
    const { inputs, options, signal } = context;
    const matcher = matcherOf(options);
    const counts = new LocalCounts(context);
    const others = (): Promise<void> => rest(signal);
    for (const input of inputs) {
      for await (const block of input.blocks()) {
        const { bytes } = block;
        await eachMatchable(block, patternOf(options), (start, end) =>
          take(bytes, matcher.spans(bytes, start, end), counts, others),
        );
      }
    }
    context.count('matches', counts.added);
    await counts.flush();
  },
};

type Spans = Iterator<Span | undefined>;

/** Counts the texts at `spans`; goes on later where the table is full, or others should have their turn. */
function take(
  bytes: Buffer,
  spans: Spans,
  counts: LocalCounts,
  others: () => Promise<void>,
): Promise<void> | undefined {
  for (let next = spans.next(); next.done !== true; next = spans.next()) {
    if (next.value === undefined) return takeRest(bytes, spans, next, { counts, others });
    const [from, to] = next.value;
    if (!counts.hasRoom(to - from)) return takeRest(bytes, spans, next, { counts, others });
    counts.add(bytes, from, to, hashBytes(bytes, from, to));
  }
  return undefined;
}

async function takeRest(
  bytes: Buffer,
  spans: Spans,
  first: IteratorResult<Span | undefined>,
  { counts, others }: { counts: LocalCounts; others: () => Promise<void> },
): Promise<void> {
  for (let next = first; next.done !== true; next = spans.next()) {
    if (next.value === undefined) {
      await others();
      continue;
    }
    const [from, to] = next.value;
    if (!counts.hasRoom(to - from)) await counts.flush();
    if (counts.hasRoom(to - from)) counts.add(bytes, from, to, hashBytes(bytes, from, to));
    else await counts.addLarge(bytes.subarray(from, to));
  }
}
