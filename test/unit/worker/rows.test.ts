import { crc32, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { columnsBefore, csvRows } from '../../../src/worker/csv-rows.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { ndjsonRows } from '../../../src/worker/ndjson-rows.ts';
import { BadRecordError, type Row } from '../../../src/worker/operator.ts';
import { forEachRow } from '../../../src/worker/row-places.ts';
import { sourceInput } from '../../../src/worker/task-input.ts';
import { collect, latin1, putSource } from '../../support/worker-fixtures.ts';

const signal = new AbortController().signal;

interface Reading {
  readonly format: 'csv' | 'ndjson';
  readonly policy?: 'fail' | 'skip';
  readonly header?: boolean;
  readonly gzip?: boolean;
  /** Splits the file here. */
  readonly cut?: number;
}

async function rowsOf(body: string | Buffer, options: Reading): Promise<{ rows: Row[]; skipped: number }> {
  const { format, policy = 'fail', header = true, gzip = false, cut } = options;
  const objects = new MemoryObjectStore();
  const text = Buffer.from(body);
  const whole = await putSource(
    objects,
    { bucket: 'input', key: 'in/a' },
    gzip ? gzipSync(text) : text,
    gzip,
  );
  const segments =
    cut === undefined
      ? [whole]
      : [
          { ...whole, end: cut },
          { ...whole, start: cut },
        ];
  const reading = { objects, signal, onBytes: () => undefined };
  let skipped = 0;
  const bad = {
    policy,
    onSkip: () => {
      skipped++;
    },
  };
  const rows: Row[] = [];
  for (const segment of segments) {
    const batches =
      format === 'csv' ? csvRows(reading, segment, { header, bad }) : ndjsonRows(reading, segment, bad);
    rows.push(...(await collect(batches)).flat());
  }
  return { rows, skipped };
}

describe('NDJSON', () => {
  it('gives objects, passing over white space and a byte order mark', async () => {
    const body = '\uFEFF{"a":1}\r\n\n  \t\n{"a":{"b":"é"},"__proto__":2}';
    const { rows } = await rowsOf(body, { format: 'ndjson' });
    expect(rows.map((row) => JSON.stringify(row))).toEqual(['{"a":1}', '{"a":{"b":"é"},"__proto__":2}']);
  });

  it.each([1_001, 1_000_000])(
    'takes a record nested %i deep for a bad one, by file and line',
    async (levels) => {
      const deep = `{"a":1}\n{"a":${'['.repeat(levels)}${']'.repeat(levels)}}\n{"a":2}\n`;
      const message = 'in/a:2: nested deeper than 1000 levels (byte 8)';
      const failed = rowsOf(deep, { format: 'ndjson' });
      await expect(failed).rejects.toThrow(BadRecordError);
      await expect(failed).rejects.toThrow(message);
      const { rows, skipped } = await rowsOf(deep, { format: 'ndjson', policy: 'skip' });
      expect(rows).toEqual([{ a: 1 }, { a: 2 }]);
      expect(skipped).toBe(1);
      const open = `${'{"a":'.repeat(levels)}\n`;
      expect((await rowsOf(open, { format: 'ndjson', policy: 'skip' })).skipped).toBe(1);
    },
  );

  it.each([
    ...['1e999', '-1E+400', `1${'0'.repeat(400)}`, '2e308', '1.5e000309', '-0.5E+0310'],
    ...[`1${'0'.repeat(220)}e99`, `1${'0'.repeat(220)}.5E+0099`, `${'9'.repeat(300)}e9`],
  ])('takes a number that no double holds for a bad record: %s', async (number) => {
    const body = `{"a":"1e999"}\n{"a":{"b":[${number}]}}\n{"a":1e-999}\n`;
    const failed = rowsOf(body, { format: 'ndjson' });
    await expect(failed).rejects.toThrow('in/a:2: a number beyond the range of doubles (byte 14)');
    const { rows, skipped } = await rowsOf(body, { format: 'ndjson', policy: 'skip' });
    expect(rows).toEqual([{ a: '1e999' }, { a: 0 }]);
    expect(skipped).toBe(1);
  });

  it.each([
    '1.5e308',
    `1${'0'.repeat(299)}e9`,
    `1${'0'.repeat(400)}e-99`,
    '1e-0400',
    `0.${'0'.repeat(400)}1e99`,
  ])('takes a number as it is that a double holds: %s', async (number) => {
    const { rows } = await rowsOf(`{"a":${number}}\n`, { format: 'ndjson' });
    expect(rows).toEqual([{ a: Number(number) }]);
  });

  it('takes records as deep as the limit, and brackets within strings', async () => {
    const deep = `{"a":${'['.repeat(999)}${']'.repeat(999)}}`;
    const text = `{"a":"${'['.repeat(3_000)}\\\\","b":"\\"${'{'.repeat(3_000)}"}`;
    const { rows } = await rowsOf(`${deep}\n${text}\n`, { format: 'ndjson' });
    expect(rows.map((row) => JSON.stringify(row))).toEqual([deep, text]);
  });

  it.each([
    ['{"a":1}\n\n[1]\n', 'in/a:3: not a JSON object (byte 9)'],
    ['{"a":1}\n3', 'in/a:2: not a JSON object (byte 8)'],
    ['{"a":1}\nnull\n', 'in/a:2: not a JSON object (byte 8)'],
  ])('names file and line of a bad record: %j', async (body, message) => {
    await expect(rowsOf(body, { format: 'ndjson' })).rejects.toThrow(message);
    await expect(rowsOf(body, { format: 'ndjson', gzip: true })).rejects.toThrow(message);
    await expect(rowsOf(body, { format: 'ndjson', cut: 3 })).rejects.toThrow(message);
  });

  it('says what is wrong with broken JSON and broken UTF-8', async () => {
    await expect(rowsOf('{}\n{"a":\n', { format: 'ndjson' })).rejects.toThrow(
      /^in\/a:2: not valid JSON: .*\(byte 3\)$/,
    );
    await expect(rowsOf(latin1('{"a":"ÿ"}\n'), { format: 'ndjson' })).rejects.toThrow(
      'in/a:1: not valid UTF-8 (byte 0)',
    );
  });

  it('skips and counts bad records where it should', async () => {
    const { rows, skipped } = await rowsOf('x\n{"a":1}\n[]\n', { format: 'ndjson', policy: 'skip' });
    expect({ rows, skipped }).toEqual({ rows: [{ a: 1 }], skipped: 2 });
  });
});

describe('CSV', () => {
  it.each([
    ['empty lines', '\n'.repeat(10_000)],
    ['lines', 'abc\n'.repeat(10_000)],
  ])('takes no more than a record may hold after a quote that nobody closes: %s', async (_, lines) => {
    const objects = new MemoryObjectStore();
    const segment = await putSource(
      objects,
      { bucket: 'input', key: 'in/a' },
      Buffer.from(`a\n"${lines}`),
      false,
    );
    const reading = { objects, signal, onBytes: () => undefined, lineBytes: 1_000 };
    const bad = { policy: 'skip', onSkip: () => undefined } as const;
    await expect(collect(csvRows(reading, segment, { header: true, bad }))).rejects.toThrow(
      'in/a:2: the record is longer than 1000 bytes',
    );
  });

  it.each([','.repeat(100_000), `"a"${',"a"'.repeat(100_000)}`])(
    'takes a record of more fields than may be for a bad one',
    async (line) => {
      const { rows, skipped } = await rowsOf(`a\n1\n${line}\n2\n`, { format: 'csv', policy: 'skip' });
      expect(rows).toEqual([{ a: '1' }, { a: '2' }]);
      expect(skipped).toBe(1);
      await expect(rowsOf(`a\n${line}\n`, { format: 'csv' })).rejects.toThrow(
        'in/a:2: more than 100000 fields',
      );
    },
  );

  it('joins a quoted field of very many pieces', async () => {
    const field = `${'x""\n'.repeat(5_000)}end`;
    const { rows } = await rowsOf(`a\n"${field}"\n`, { format: 'csv' });
    expect(rows).toEqual([{ a: `${'x"\n'.repeat(5_000)}end` }]);
  });

  it('reads quoted fields with commas, quotes and line ends', async () => {
    const body = '\uFEFFname,text\r\na,"x, ""y""\r\nz"\n\nb,\n"c",""';
    const { rows } = await rowsOf(body, { format: 'csv' });
    expect(rows).toEqual([
      { name: 'a', text: 'x, "y"\r\nz' },
      { name: 'b', text: '' },
      { name: 'c', text: '' },
    ]);
  });

  it('names columns c0, c1, … without a header', async () => {
    expect((await rowsOf('1,2\n3,4\n', { format: 'csv', header: false })).rows).toEqual([
      { c0: '1', c1: '2' },
      { c0: '3', c1: '4' },
    ]);
  });

  it.each(['', '\n', 'a,b\n'])('has no rows in %j', async (body) => {
    expect((await rowsOf(body, { format: 'csv' })).rows).toEqual([]);
  });

  it.each([
    ['a,b\n1,2\n3\n', 'in/a:3: 1 fields where there should be 2'],
    ['a,b\n"1\n\n",2\n3,4,5\n', 'in/a:5: 3 fields where there should be 2'],
    ['a,b\n1,x"y\n', 'in/a:2: a quote within a field that does not begin with one'],
    ['a,b\n1,"x"y\n', 'in/a:2: text after the closing quote of a field'],
    ['a,b\n1,2\n3,"x\n5,6\n', 'in/a:3: a quoted field is not closed'],
    ['a,a\n1,2\n', 'in/a:1: two columns are named "a"'],
  ])('names file and line of what is wrong in %j', async (body, message) => {
    await expect(rowsOf(body, { format: 'csv' })).rejects.toThrow(message);
  });

  it('loses one record to a stray quote when it skips', async () => {
    const { rows, skipped } = await rowsOf('a,b\n1,"x"y\n3,4\n5\n6,7\n', { format: 'csv', policy: 'skip' });
    expect({ rows, skipped }).toEqual({
      rows: [
        { a: '3', b: '4' },
        { a: '6', b: '7' },
      ],
      skipped: 2,
    });
  });
});

describe('broken files', () => {
  it('names a gzip file that is cut short', async () => {
    const objects = new MemoryObjectStore();
    const body = gzipSync(Buffer.from('{"a":1}\n'.repeat(1_000)));
    const segment = await putSource(objects, { bucket: 'input', key: 'in/b.gz' }, body.subarray(0, 30), true);
    const bad = { policy: 'skip', onSkip: () => undefined } as const;
    await expect(
      collect(ndjsonRows({ objects, signal, onBytes: () => undefined }, segment, bad)),
    ).rejects.toThrow('in/b.gz: not whole gzip data: unexpected end of file');
  });

  it('names a file that changed since it was planned', async () => {
    const objects = new MemoryObjectStore();
    const segment = await putSource(objects, { bucket: 'input', key: 'in/c' }, latin1('{}\n'));
    await objects.write({ bucket: 'input', key: 'in/c' }, latin1('[]\n'));
    const bad = { policy: 'fail', onSkip: () => undefined } as const;
    await expect(
      collect(ndjsonRows({ objects, signal, onBytes: () => undefined }, segment, bad)),
    ).rejects.toThrow('in/c: changed since the job was planned');
  });
});

describe('rows that an operator cannot work with', () => {
  /** The file's rows, of which the operator refuses the one whose `k` is "bad". */
  const refused = async (body: string, format: 'csv' | 'ndjson', cut?: number): Promise<unknown> => {
    const objects = new MemoryObjectStore();
    const whole = await putSource(objects, { bucket: 'input', key: 'in/a' }, Buffer.from(body), false);
    const input = sourceInput({
      format,
      header: true,
      onBadRecord: 'skip',
      segments: [{ ...whole, start: cut ?? 0 }],
      reading: { objects, signal, onBytes: () => undefined },
      meter: new AttemptMeter(new MemoryClock(), signal, () => 0),
    });
    return forEachRow(input, (row) => {
      if (row['k'] === 'bad') throw new BadRecordError('no good');
      return undefined;
    });
  };

  it('are told by file and line, whatever was passed over or skipped before', async () => {
    const csv = 'k,v\n\n1,"a\nb"\ntoo,many,fields\nbad,c\n';
    await expect(refused(csv, 'csv')).rejects.toMatchObject({
      name: 'BadRecord',
      message: 'in/a:6: no good',
    });
    const ndjson = '{"k":1}\n\nnot json\n{"k":"bad"}\n';
    await expect(refused(ndjson, 'ndjson')).rejects.toThrow('in/a:4: no good');
  });

  it('are told by the line of the file and not of the split or batch', async () => {
    const many = '{"k":1}\n'.repeat(2_500);
    await expect(refused(`${many}{"k":"bad"}\n`, 'ndjson', 8_000)).rejects.toThrow('in/a:2501: no good');
    await expect(refused(`k\n${'1\n'.repeat(2_500)}bad\n`, 'csv')).rejects.toThrow('in/a:2502: no good');
  });
});

describe('an input that is read again, since the first way did not do', () => {
  it.each([1, 2, 3])(
    'has its records, bytes and skipped ones counted once, where record %i was reached',
    async (reached) => {
      const body = 'k,v\n1,a\ntoo,many,fields\n2,b\n3,c\n';
      const objects = new MemoryObjectStore();
      const whole = await putSource(objects, { bucket: 'input', key: 'in/a' }, Buffer.from(body), false);
      const meter = new AttemptMeter(new MemoryClock(), signal, () => 0);
      const input = sourceInput({
        format: 'csv',
        header: true,
        onBadRecord: 'skip',
        segments: [whole],
        reading: { objects, signal, onBytes: (count) => (meter.bytesRead += count) },
        meter,
      });
      let read = 0;
      for await (const { records } of input.csv?.() ?? []) if ((read += records.count) >= reached) break;
      await forEachRow(input, () => undefined);
      expect(meter.totals()).toEqual({ bytesRead: body.length, recordsIn: 3, recordsOut: 0 });
      expect(meter.counters()).toEqual({ skippedRecords: 1 });
    },
  );
});

describe('the columns of an input of which a task reads a share', () => {
  const columnsOf = async (first: string | Buffer | undefined): Promise<readonly string[] | undefined> => {
    const objects = new MemoryObjectStore();
    const own = await putSource(objects, { bucket: 'input', key: 'in/b' }, Buffer.from('b,a\n1,2\n'), false);
    const isPacked = typeof first === 'object';
    const place = { bucket: 'input', key: 'in/a' };
    const other =
      first === undefined ? undefined : await putSource(objects, place, Buffer.from(first), isPacked);
    const meter = new AttemptMeter(new MemoryClock(), signal, () => 0);
    const input = sourceInput({
      ...{ format: 'csv', header: true, onBadRecord: 'fail', segments: [own] },
      first: other,
      reading: { objects, signal, onBytes: (count) => (meter.bytesRead += count) },
      meter,
    });
    const columns = await input.firstColumns?.();
    expect(meter.bytesRead).toBe(0);
    return columns;
  };

  it('are those of the first file, whoever reads it, and are no work of its own', async () => {
    expect(await columnsOf('a,b\n1,2\n')).toEqual(['a', 'b']);
    expect(await columnsOf('\ufeffa,"b, c"')).toEqual(['a', 'b, c']);
    expect(await columnsOf(gzipSync('a,b\n'))).toEqual(['a', 'b']);
    const wide = Array.from({ length: 20_000 }, (_, column) => `column ${String(column)}`);
    expect(await columnsOf(`${wide.join(',')}\n`)).toEqual(wide);
  });

  it('are no work of its own where the file is gzip that is cut at its members', async () => {
    const objects = new MemoryObjectStore();
    const rows = (from: number): string =>
      Array.from({ length: 500 }, (_, at) => `${String(from + at)},x\n`).join('');
    const members = ['a,b\n', ...Array.from({ length: 20 }, (_, at) => rows(at * 500))].map((text) =>
      gzipSync(text),
    );
    const body = Buffer.concat(members);
    const cut = Buffer.concat(members.slice(0, 11)).length;
    const whole = await putSource(objects, { bucket: 'input', key: 'a.csv.gz' }, body, true);
    const first = { ...whole, end: cut };
    let count = 0;
    for (const own of [first, { ...whole, start: cut }]) {
      const meter = new AttemptMeter(new MemoryClock(), signal, () => 0);
      const size = own.end - own.start;
      meter.bytesTotal = size;
      const input = sourceInput({
        ...{ format: 'csv', header: true, multiline: false, onBadRecord: 'fail', segments: [own], first },
        reading: { objects, signal, onBytes: (bytes) => (meter.bytesRead += bytes) },
        meter,
      });
      expect(await input.firstColumns?.()).toEqual(['a', 'b']);
      for await (const batch of input.rows()) count += batch.length;
      expect([meter.bytesRead, meter.bytesTotal]).toEqual([size, size]);
    }
    expect(count).toBe(10_000);
  });

  it('are read in one pass where the first file cannot be entered in its middle', async () => {
    const wide = Array.from({ length: 20_000 }, (_, at) => crc32(`column ${String(at)}`).toString(36));
    const body = zstdCompressSync(`${wide.join(',')}\n`);
    expect(body.length).toBeGreaterThan(64 * 1024);
    const objects = new MemoryObjectStore();
    const read = vi.spyOn(objects, 'read');
    const first = await putSource(objects, { bucket: 'input', key: 'in/a.zst' }, body);
    const whole: SourceSegment = { ...first, codec: 'zstd', start: body.length };
    const form = { header: true, bad: { policy: 'fail', onSkip: () => undefined } } as const;
    const columns = await columnsBefore({ objects, signal, onBytes: () => undefined }, whole, form);
    expect(columns).toEqual(wide);
    expect(read).toHaveBeenCalledTimes(1);
  });

  it('are not known where that is no CSV, has nothing, or is not told', async () => {
    expect(await columnsOf('\n')).toBeUndefined();
    expect(await columnsOf('a,"b')).toBeUndefined();
    expect(await columnsOf(undefined)).toBeUndefined();
  });
});
