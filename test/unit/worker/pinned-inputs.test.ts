import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { type BuiltinJobName, builtinJob } from '../../../src/operators/builtin-jobs.ts';
import { MemoryHost } from '../../support/memory-host.ts';

const csv = Buffer.from('id,name\n1,one\n2,two\n');
const ndjson = Buffer.from('{"id":1,"name":"one"}\n{"id":2,"name":"two"}\n');
const text = Buffer.from('one\ntwo\nthree\n');

/** Jobs that read `in` by every way there is to read an object of the user. */
const readings: readonly { readonly how: string; readonly body: Buffer; readonly job: JobOf }[] = [
  { how: 'lines', body: text, job: (uri) => builtin('wordcount', { inputs: [uri] }) },
  { how: 'lines to be sorted', body: text, job: (uri) => builtin('sort', { inputs: [uri] }) },
  { how: 'gzip lines', body: gzipSync(text), job: (uri) => builtin('wordcount', { inputs: [uri] }) },
  { how: 'NDJSON', body: ndjson, job: (uri) => grouped('ndjson', uri) },
  { how: 'gzip NDJSON', body: gzipSync(ndjson), job: (uri) => grouped('ndjson', uri) },
  { how: 'CSV', body: csv, job: (uri) => grouped('csv', uri) },
  { how: 'gzip CSV', body: gzipSync(csv), job: (uri) => grouped('csv', uri) },
  { how: 'the broadcast side of a join', body: csv, job: (uri, other) => joined(other, uri, true) },
  { how: 'the shuffled side of a join', body: csv, job: (uri, other) => joined(other, uri, false) },
];

type JobOf = (uri: string, other: string) => JobSpecInput;

const builtin = (name: BuiltinJobName, options: Readonly<Record<string, unknown>>): JobSpecInput =>
  builtinJob(name, options as never);
const grouped = (format: 'csv' | 'ndjson', uri: string): JobSpecInput =>
  builtin('groupby', { inputs: [uri], format, key: ['id'], aggregates: [{ op: 'count' }], partitions: 1 });
const joined = (left: string, right: string, broadcast: boolean): JobSpecInput =>
  builtin('join', {
    inputs: [left],
    right: [right],
    format: 'csv',
    leftKey: 'id',
    rightKey: 'id',
    broadcast,
    ...(broadcast ? {} : { partitions: 1 }),
  });

const changes = [
  { what: 'changed', change: (body: Buffer): Buffer => Buffer.from(body.toReversed()) },
  { what: 'changed', change: (body: Buffer): Buffer => Buffer.concat([body, Buffer.from('more\n')]) },
  { what: 'changed', change: (body: Buffer): Buffer => body.subarray(0, 3) },
  { what: 'gone', change: (): undefined => undefined },
] as const;

describe('an input that is another than when the job was planned', () => {
  it.each(readings.flatMap((reading) => changes.map((change) => ({ ...reading, ...change }))))(
    'fails the job at once and by name: $how, $what',
    async ({ how, body, job, what, change }) => {
      const host = new MemoryHost();
      const key = how.startsWith('gzip') ? 'in.gz' : 'in';
      const uri = await host.put(key, body);
      const other = await host.put('other', Buffer.from('id,left\n1,a\n'));
      const launched: string[] = [];
      host.deliver = async (run, payload) => {
        if (launched.length === 0) {
          const changed = change(body);
          if (changed === undefined) await host.objects.remove('input', [key]);
          else await host.put(key, changed);
        }
        launched.push(payload.attemptId);
        return run();
      };
      const ended = await host.run(job(uri, other));
      expect(ended.job.state).toBe('failed');
      expect(ended.job.error?.message).toContain(`${key}: ${what} since the job was planned`);
      // No task is tried a second time: it would read the same.
      expect(launched.filter((attemptId) => !attemptId.endsWith('/0'))).toEqual([]);
    },
  );

  it('does no harm where it was empty, and so is read as it was', async () => {
    const host = new MemoryHost();
    const uris = [await host.put('a', text), await host.put('empty', Buffer.alloc(0))];
    host.deliver = async (run) => {
      await host.put('empty', Buffer.from('four\n'));
      return run();
    };
    const ended = await host.run(builtin('sort', { inputs: uris }));
    expect(ended.job.error).toBeUndefined();
    expect(ended.output.toString()).toBe('one\nthree\ntwo\n');
  });
});
