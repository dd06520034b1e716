import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import { attemptDataKey } from '../../../src/contracts/keys.ts';
import type { Operator } from '../../../src/worker/operator.ts';
import { putSource } from '../../support/worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from '../../support/worker-stage.ts';

/** Sums by key; reads and writes as its options say. */
const source = `
const digits = (buffer) => Number(Buffer.from(buffer).toString() || '0');
export default {
  check() {},
  combiner: () => (left, right) => Buffer.from(String(digits(left) + digits(right))),
  async run({ inputs, output, options, partitions, count }) {
    let number = 0;
    const emit = async (key, value) => {
      count('emitted', 1);
      const to = options.places && number++ % 3 === 0 ? number % partitions : undefined;
      await output.emit(key, value, to);
    };
    for (const input of inputs) {
      if (options.read === 'rows') {
        for await (const rows of input.rows()) for (const row of rows) {
          const kind = Object.is(row.n, -0) ? '-0' : String(row.n);
          await emit(Buffer.from(JSON.stringify(row) + kind), Buffer.from('1'));
        }
      } else if (options.read === 'blocks') {
        for await (const { bytes, offset } of input.blocks()) {
          count('offsets', offset);
          if (options.write) await output.write(bytes);
          else for (let at = 0; at < bytes.length; at += options.piece) await emit(bytes.subarray(at, at + options.piece), Buffer.from('2'));
        }
      } else {
        for await (const batch of input.records()) for (const { key } of batch) await emit(key, Buffer.from('1'));
      }
    }
  },
};`;
const code = { s3: 's3://code/job.mjs', sha256: createHash('sha256').update(source).digest('hex') };
const operator = (
  (await import(`data:text/javascript;base64,${Buffer.from(source).toString('base64')}`)) as {
    default: Operator;
  }
).default;

interface Case {
  readonly text: Buffer;
  readonly format: 'text' | 'ndjson';
  readonly options: { read: string; write?: boolean; places?: boolean; piece?: number };
  readonly output: 'final' | 'sorted' | 'unsorted';
  readonly partitions: number;
}

/** The bytes that a task left, where its partitions lie and what it counted. */
async function outcomeOf(given: Case, how: 'here' | 'elsewhere') {
  const worker = new WorkerOfTest();
  await worker.objects.write({ bucket: 'code', key: 'job.mjs' }, Buffer.from(source));
  const segment = await putSource(worker.objects, { bucket: 'input', key: 'text' }, given.text);
  const { format, options, output, partitions } = given;
  const stage: StageOfTest = {
    run: (context) => operator.run(context),
    combiner: (given) => operator.combiner?.(given) ?? ((left) => left),
    ...(how === 'here' ? {} : { code }),
    options,
    output,
    partitions,
    inputs: [{ planned: { kind: 'source', format, header: true, onBadRecord: 'skip' }, segments: [segment] }],
  };
  expect(await worker.run(stage, 0, { sortMemoryBytes: 64 * 1024 })).toBe('done');
  const [result] = await worker.results();
  const { recordsIn, recordsOut, bytesIn, bytesOut, counters } = result ?? {};
  const place = { recordsIn, recordsOut, bytesIn, bytesOut, counters, partitions: result?.partitions };
  if (output === 'final') {
    const final = result?.final;
    const upload = final?.kind === 'upload' ? final : undefined;
    return { place, parts: upload?.parts.map(({ number, etag }) => ({ number, etag })), bytes: undefined };
  }
  const key = attemptDataKey(worker.jobId, attemptIdOf('work', 0, 0));
  const bytes =
    bytesOut === 0 ? '' : (await worker.objects.readAll({ bucket: worker.dataBucket, key })).toString();
  return { place, parts: undefined, bytes };
}

const lines = fc
  .array(fc.uint8Array({ maxLength: 40 }), { maxLength: 400 })
  .map((all) => Buffer.concat(all.flatMap((line) => [Buffer.from(line), Buffer.from('\n')])));
/** Few different keys, so that there is much to combine. */
const words = fc
  .array(fc.constantFrom('a', 'bb', '', 'ccc', 'a\0', 'é'), { maxLength: 3_000 })
  .map((all) => Buffer.from(all.join('\n')));
const rows = fc
  .array(
    fc.oneof(
      fc.constant('{"n":-0}'),
      fc.constant('{"n":1e999}'),
      fc.object({ maxDepth: 2 }).map((row) => JSON.stringify(row)),
    ),
    {
      maxLength: 200,
    },
  )
  .map((all) => Buffer.from(all.join('\n')));

const places = fc.record({
  output: fc.constantFrom('sorted' as const, 'sorted' as const, 'unsorted' as const, 'final' as const),
  partitions: fc.integer({ min: 1, max: 7 }),
  places: fc.boolean(),
});
const reading = fc.oneof(
  fc.record({
    text: fc.oneof(lines, words),
    format: fc.constant('text' as const),
    read: fc.constantFrom('records', 'blocks'),
  }),
  fc.record({ text: rows, format: fc.constant('ndjson' as const), read: fc.constant('rows') }),
);
const cases = fc
  .tuple(reading, places, fc.boolean(), fc.integer({ min: 1, max: 5_000 }))
  .map(([{ text, format, read }, { output, partitions, places: hasPlaces }, write, piece]): Case => ({
    text,
    format,
    output,
    partitions: output === 'sorted' ? partitions : 1,
    options: { read, write, places: hasPlaces, piece },
  }));

describe('user code in a process of its own', () => {
  it('leaves what it would have left in the worker, byte by byte, combined or not', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async (given) => {
        expect(await outcomeOf(given, 'elsewhere')).toEqual(await outcomeOf(given, 'here'));
      }),
      { numRuns: 25 },
    );
  }, 300_000);

  it.each([
    ['records of 60 MB', 60 * 1024 * 1024, 'sorted'],
    ['records of 60 MB', 60 * 1024 * 1024, 'unsorted'],
    ['text of 60 MB in one piece', 60 * 1024 * 1024, 'final'],
  ] as const)(
    'carries %s (%#)',
    async (_, size, output) => {
      const text = Buffer.alloc(size, 'x');
      const given: Case = { text, format: 'text', output, partitions: 1, options: { read: 'records' } };
      const [there, here] = [await outcomeOf(given, 'elsewhere'), await outcomeOf(given, 'here')];
      expect(there.place).toEqual(here.place);
      expect(there.place.recordsOut).toBe(1);
      expect(there.parts).toEqual(here.parts);
      expect(there.bytes === here.bytes).toBe(true);
    },
    120_000,
  );
});
