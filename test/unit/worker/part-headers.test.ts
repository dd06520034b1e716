import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { sourceInput } from '../../../src/worker/task-input.ts';
import type { CsvBlock, Row, TaskInput } from '../../../src/worker/operator.ts';
import { collect, putSource } from '../../support/worker-fixtures.ts';

const signal = new AbortController().signal;

async function* inputBlocks(input: TaskInput): AsyncGenerator<CsvBlock> {
  yield* input.csv?.(undefined, undefined) ?? [];
}

/** Rows of a later part beside a first one, read as rows and as bytes, whole or in two pieces. */
async function read(first: string, part: string, cut?: number, columns = ['id', 'name']) {
  const objects = new MemoryObjectStore();
  const put = (name: string, text: string): Promise<SourceSegment> =>
    putSource(objects, { bucket: 'input', key: `out/${name}` }, Buffer.from(text));
  const headerIn = await put('part-00000', first);
  const whole = { ...(await put('part-00001', part)), headerIn };
  const segments =
    cut === undefined
      ? [whole]
      : [
          { ...whole, end: cut },
          { ...whole, start: cut },
        ];
  const rows: Row[] = [];
  const lines: string[] = [];
  for (const segment of segments) {
    const input = sourceInput({
      ...{ format: 'csv', header: true, onBadRecord: 'fail', multiline: false, first: whole },
      segments: [segment],
      reading: { objects, signal, onBytes: () => undefined },
      meter: new AttemptMeter(new MemoryClock(), signal, () => 0),
    });
    rows.push(...(await collect(input.rows())).flat());
    for (const { bytes, columns } of await collect(inputBlocks(input)))
      lines.push(
        ...bytes
          .toString()
          .split('\n')
          .slice(0, -1)
          .map((line) => `${columns.join()}=${line}`),
      );
    expect(await input.firstColumns?.()).toEqual(columns);
  }
  return { rows, lines };
}

describe('a later part of CSV', () => {
  it.each([undefined, 1, 5, 8])('has its columns from the first part, cut at %s', async (cut) => {
    const { rows, lines } = await read('id,name\n1,a\n', '2,é\n3,"x"\n', cut);
    expect(rows).toEqual([
      { id: '2', name: 'é' },
      { id: '3', name: 'x' },
    ]);
    expect(lines).toEqual(['id,name=2,é', 'id,name=3,"x"']);
  });

  it.each([undefined, 3, 12])('may have the same header of its own, cut at %s', async (cut) => {
    const { rows, lines } = await read('id,name\n1,a\n', '"id",name\r\n2,id\n', cut);
    expect(rows).toEqual([{ id: '2', name: 'id' }]);
    expect(lines).toEqual(['id,name=2,id']);
  });

  it.each([
    ['columns without names', '"",a,b\n', '7,,\n', { '': '7', a: '', b: '' }],
    ['numbers for names', '1,2,3\n', '2,2,1\n', { 1: '2', 2: '2', 3: '1' }],
    ['numbers that most are names', '1,2,3\n', '1,2,5\n', { 1: '1', 2: '2', 3: '5' }],
    ['most names as values', 'x,y,z\n', 'z,x,w\n', { x: 'z', y: 'x', z: 'w' }],
    ['half of its names in their own columns', 'id,a,b,c\n', '7,a,B,\n', { id: '7', a: 'a', b: 'B', c: '' }],
    ['no value but one in the column of its name', 'a,b,c\n', 'a,,\n', { a: 'a', b: '', c: '' }],
  ])('may begin with a row of %s', async (_what, first, part, row) => {
    const { rows } = await read(first, part, undefined, first.trim().replaceAll('"', '').split(','));
    expect(rows).toEqual([row]);
  });

  it.each([
    ['another number of fields', '2,b,c\n'],
    ['the same names in another order', 'name,id\nb,2\n'],
  ])('is refused where its first line has %s', async (_what, part) => {
    await expect(read('id,name\n', part)).rejects.toThrow(
      /part-00001:1: the first line of a later part must be a row of the columns that its part-00000 names/,
    );
  });

  it.each([
    ['one of three names is another', 'id,name,email', 'id,name,mail'],
    ['a name is in other letters', 'id,name,email', 'ID,name,email'],
    ['all names are in other letters', 'id,name', 'ID,NAME'],
    ['names are in other letters and another order', 'id,name', 'Name,ID'],
    ['a name is in other letters beside numbers', 'city,2020,2021', 'City,2020,2021'],
    ['a name is another beside a column without one', '"",id,name,email', '"",id,name,mail'],
  ])('is refused where %s, as that is another header', async (_what, first, part) => {
    await expect(read(`${first}\n`, `${part}\n`)).rejects.toThrow(
      'part-00001:1: the first line of a later part must be a row of the columns that its part-00000 names',
    );
  });

  it('is told where the first part names a column twice', async () => {
    await expect(read('id,id\n', '2,b\n')).rejects.toThrow(/part-00000:1: two columns are named "id"/);
  });
});
