import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { SourceFormat } from '../../../src/contracts/job-spec.ts';
import { job, read, type Dataset, type Job } from '../../../src/dataflow/index.ts';
import { KeyEncoder } from '../../../src/dataflow/key-codec.ts';
import { describeJob, operatorOf } from '../../../src/dataflow/runtime.ts';
import { ValueEncoder } from '../../../src/dataflow/value-codec.ts';
import { frameOf } from '../../../src/worker/framing.ts';
import { InterruptedWorker, inputBucket, savedBy } from '../../support/interrupted-worker.ts';
import { putSource, recordsOf } from '../../support/worker-fixtures.ts';
import type { StageOfTest } from '../../support/worker-stage.ts';

/** Blocks of input hold at least a quarter of a megabyte: so long are records that lie in one each. */
const padding = 'x'.repeat(270_000);
const perFile = 5;
/** Each record has a number, a word that repeats, and the padding. */
const words = ['bee', 'ant', 'cat', 'bee', 'ant', 'dog', 'bee', 'cat', 'ant'];
type Hit = Readonly<Record<'n' | 'word' | 'padding', string>>;
const hits = words.map((word, index): Hit => ({ n: String(index), word, padding }));

const texts: Readonly<Record<'text' | 'ndjson' | 'csv', readonly string[]>> = {
  // The first file lacks the end of its last line.
  text: filesOf(({ n, word }) => `${n} ${word} ${padding}\n`).map((text, file) =>
    file === 0 ? text.trimEnd() : text,
  ),
  ndjson: filesOf((hit) => `${JSON.stringify(hit)}\n`),
  csv: filesOf(({ n, word }) => `${n},${word},${padding}\n`).map((text) => `n,word,padding\n${text}`),
};
function filesOf(line: (hit: Hit) => string): readonly string[] {
  return [hits.slice(0, perFile), hits.slice(perFile)].map((some) => some.map(line).join(''));
}

interface Case {
  readonly format: keyof typeof texts;
  readonly job: Job;
  readonly output: NonNullable<StageOfTest['output']>;
  readonly onBadRecord?: 'skip';
  /** Keys of the records that another stage brings. */
  readonly side?: readonly string[];
  /** Its output, where that is text to read. */
  readonly body?: string;
}
const settings = { resumes: true };
const fromText = (): Dataset<Hit> =>
  read.text().map((line) => {
    const [n = '', word = ''] = line.split(' ');
    return { n, word, padding: '' };
  });
/** What is left out is told of in the job's log, which is this process's own here. */
vi.spyOn(console, 'warn').mockImplementation(() => undefined);
const failing = ({ n, word }: Hit): string => {
  if (word === 'cat') throw new Error('no cats');
  return `${word}-${n}`;
};

/** Jobs whose first stage gives the very bytes of one that was not interrupted. */
const alike: Readonly<Record<string, Case>> = {
  'text, with counters': {
    format: 'text',
    output: 'final',
    job: job(
      'x',
      fromText()
        .filter(({ word }) => word !== 'dog')
        .flatMap((hit, context) => {
          context.count('hits');
          context.count(hit.word, Number(hit.n));
          return [hit, hit];
        })
        .write.text(
          ({ n, word }, { input, task }) => `${word} ${n} ${String(task)} ${String(input?.offset)}`,
        ),
      settings,
    ),
  },
  'csv with a header': {
    format: 'ndjson',
    output: 'final',
    job: job('x', read.ndjson<Hit>().write.csv(['word', 'n']), settings),
    body: 'word,n\nbee,0\nant,1\ncat,2\nbee,3\nant,4\ndog,5\nbee,6\ncat,7\nant,8\n',
  },
  'ndjson, bad records left out': {
    format: 'csv',
    output: 'final',
    onBadRecord: 'skip',
    job: job(
      'x',
      read
        .csv({ columns: ['n', 'word'] })
        .map((row) => failing(row as Hit))
        .write.ndjson(),
      settings,
    ),
  },
  'records by key': {
    format: 'text',
    output: 'sorted',
    job: job(
      'x',
      fromText()
        .groupBy(({ word }) => word)
        .write.ndjson(),
      settings,
    ),
  },
  'values that are added where they meet': {
    format: 'ndjson',
    output: 'sorted',
    job: job(
      'x',
      read
        .ndjson<Hit>()
        .map(({ n, word }) => ({ n, word }))
        .keyBy(({ word }) => word)
        .aggregate({ zero: () => '', add: (sum, { n }) => sum + n })
        .write.ndjson(),
      settings,
    ),
  },
  'a join with records that another stage brings whole': {
    format: 'text',
    output: 'final',
    job: job(
      'x',
      fromText()
        .keyBy(({ word }) => word)
        .join(
          read
            .text({ input: 'other' })
            .map((line) => ({ of: line }))
            .keyBy(({ of }) => of),
          { broadcast: true, how: 'left' },
        )
        .write.text(([word, [{ n }, right]]) => `${word} ${n} ${right?.of ?? 'none'}`),
      settings,
    ),
    side: ['ant', 'dog'],
    body: 'bee 0 none\nant 1 ant\ncat 2 none\nbee 3 none\nant 4 ant\ndog 5 dog\nbee 6 none\ncat 7 none\nant 8 ant\n',
  },
  'records to be sorted': {
    format: 'csv',
    output: 'unsorted',
    job: job(
      'x',
      read
        .csv({ columns: ['n', 'word'] })
        .map(({ n, word }) => ({ n, word }))
        .sortBy(({ word }) => word)
        .write.ndjson(),
      settings,
    ),
  },
};

/** The first stage of a job over its files. */
async function stageOf(
  worker: InterruptedWorker,
  { job: whole, format, output, onBadRecord = 'skip' as const, side }: Case,
): Promise<Omit<StageOfTest, 'run'>> {
  const segments = [];
  for (const [index, text] of texts[format].entries())
    segments.push(
      await putSource(worker.objects, { bucket: inputBucket, key: `f${String(index)}` }, Buffer.from(text)),
    );
  const { stages, graph } = describeJob(whole);
  const planned = {
    kind: 'source',
    format: format satisfies SourceFormat,
    header: true,
    onBadRecord,
    ...(format === 'csv' ? { multiline: false } : {}),
  } as const;
  const others = side === undefined ? [] : [await broughtBy(worker, side)];
  const stage = stages.find(({ inputs }) => inputs.length === 1 + others.length);
  return {
    options: { stage: stage?.name ?? '', graph, partitions: 2 },
    output,
    partitions: output === 'sorted' ? 2 : 1,
    inputs: [{ planned, segments }, ...others],
  };
}

/** An input that another stage brings whole: a record for each of these keys. */
async function broughtBy(
  worker: InterruptedWorker,
  keys: readonly string[],
): Promise<NonNullable<StageOfTest['inputs']>[number]> {
  const planned = { kind: 'stage', stage: 'other', pattern: 'broadcast', producerTasks: 1 } as const;
  const frames = keys.map((key) =>
    frameOf(new KeyEncoder().encode(key, 'keyBy'), new ValueEncoder().encode({ of: key })),
  );
  const segment = await worker.putData('other', 0, Buffer.concat(frames));
  return { planned: { ...planned, producerPartitions: 1 }, segments: [segment] };
}

/** What a case comes to where the first attempts are interrupted, each by Spot while it reads its record number `at`. */
async function interruptedAt(given: Case, at: readonly number[]): Promise<InterruptedWorker> {
  const worker = new InterruptedWorker();
  const stage = await stageOf(worker, given);
  const operator = operatorOf(given.job);
  let saved;
  let number = 0;
  for (const record of at) {
    const ended = await worker.interrupt({ operator, stage }, number++, {
      afterBytes: record * padding.length + 1,
      saved,
    });
    expect(ended.failure?.message).toMatch(/it hands on the \d+ % of its input/);
    saved = savedBy(ended);
  }
  const last = await worker.interrupt({ operator, stage }, number, { saved });
  expect(last.state).toBe('done');
  expect(last.progress?.takenUp?.attempt).toBe(at.length === 0 ? undefined : at.length - 1);
  return worker;
}

/** Where each of the records may be the last that an attempt sees, but for the last of all. */
const everyCut = words.slice(0, -1).map((_, at) => [at]);
const someCuts = [...everyCut, [0, 0, 0], [2, 3], [4, 1]];

describe('a job that says that its functions keep nothing over records', () => {
  it.each(Object.entries(alike))(
    'gives the same bytes, and counts the same, wherever its tasks are cut: %s',
    async (_, given) => {
      const whole = await (await interruptedAt(given, [])).outcome();
      expect(whole.recordsIn).toBe(words.length + (given.side?.length ?? 0));
      expect(whole.body).toBe(given.body ?? whole.body);
      for (const at of someCuts)
        expect(await (await interruptedAt(given, at)).outcome(), String(at)).toEqual(whole);
    },
  );

  it('holds sums for its readers that come to the same, in the same order', async () => {
    const given: Case = {
      format: 'ndjson',
      output: 'sorted',
      job: job(
        'x',
        read
          .ndjson<Hit>()
          .map(({ n, word }): readonly [string, string] => [word, n])
          .keyBy(([word]) => word)
          // Associative and not commutative: the order of the records shows.
          .reduce(([word, left], [, right]) => [word, left + right])
          .write.ndjson(),
        settings,
      ),
    };
    const expected = { ant: '148', bee: '036', cat: '27', dog: '5' };
    for (const at of [[], ...someCuts]) {
      const { body, recordsIn } = await (await interruptedAt(given, at)).outcome();
      const sums: Record<string, string> = {};
      for (const [, value] of await recordsOf(Buffer.from(body, 'latin1'))) {
        const [word = '', n = ''] = decoded(value);
        sums[word] = (sums[word] ?? '') + n;
      }
      expect([sums, recordsIn], String(at)).toEqual([expected, 9]);
    }
  });

  it('keeps of the greatest those that came first', async () => {
    const given: Case = {
      format: 'ndjson',
      output: 'unsorted',
      job: job(
        'x',
        read
          .ndjson<Hit>()
          .map(({ n, word }) => [word, n])
          .top(4, ([word]) => word ?? '')
          .write.ndjson(),
        settings,
      ),
    };
    for (const at of [[], ...someCuts]) {
      const { body } = await (await interruptedAt(given, at)).outcome();
      const kept = (await recordsOf(Buffer.from(body, 'latin1'))).map(([, value]) => decoded(value));
      // As whoever reads it takes them: by word, the greatest first, of equal ones the first.
      const best = kept.toSorted(([left = ''], [right = '']) => (left < right ? 1 : left > right ? -1 : 0));
      expect(best.slice(0, 4), String(at)).toEqual([
        ['dog', '5'],
        ['cat', '2'],
        ['cat', '7'],
        ['bee', '0'],
      ]);
    }
  });

  it('hands on nothing where it does not say so', async () => {
    const worker = new InterruptedWorker();
    onTestFinished(() => expect(worker.leftovers()).resolves.toEqual({ data: [], uploads: [] }));
    const silent = job('x', fromText().write.ndjson());
    const stage = await stageOf(worker, { format: 'text', output: 'final', job: silent });
    const ended = await worker.interrupt({ operator: operatorOf(silent), stage }, 0, {
      afterBytes: 3 * padding.length,
    });
    expect(ended.failure?.message).toBe('Spot needs its place');
    expect(ended.saved).toBeUndefined();
  });
});

/** A record between stages, as these are written: JSON behind a byte that says so. */
const decoded = (value: string): readonly string[] =>
  JSON.parse(value.slice(value.indexOf('['))) as readonly string[];
