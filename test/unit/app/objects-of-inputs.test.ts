import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { resolveSources } from '../../../src/app/plan-job.ts';
import { findJob } from '../../../src/app/query-jobs.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { ObjectRef } from '../../../src/contracts/keys.ts';
import type { ObjectInfo } from '../../../src/ports/object-store.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

/** The keys that a job reads, of a bucket `data` that holds `keys`, behind each of its addresses in turn. */
async function keysRead(keys: readonly string[], s3: readonly string[]): Promise<string[]> {
  const system = new ScriptedSystem();
  for (const key of keys) await system.objects.write({ bucket: 'data', key }, Buffer.from('x\n'));
  return sourcesOf(system, s3);
}

async function sourcesOf(system: ScriptedSystem, s3: readonly string[]): Promise<string[]> {
  const { jobId } = await submitJob(system, {
    spec: { name: 'words', stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: [...s3] }] }] },
  });
  const sources = await resolveSources(system.objects, await findJob(system.jobs, jobId));
  return [...sources.values()].flat().map(({ key }) => key);
}

describe('the objects of an input', () => {
  it('are those of a prefix but what others keep beside data: the output of a job can be the input of the next', async () => {
    const keys = [
      'out/part-00000',
      'out/part-00001',
      'out/_SUCCESS',
      'out/_temporary/0/part-00000',
      'out/.part-00000.crc',
      'out/day=1/.hidden/x',
      'out/day=1/_committed_7',
      'out/day=1/part-00000',
      'out/_hour=3/part-00000',
      'out/a_b.csv',
    ];
    expect(await keysRead(keys, ['s3://data/out/'])).toEqual([
      'out/_hour=3/part-00000',
      'out/a_b.csv',
      'out/day=1/part-00000',
      'out/part-00000',
      'out/part-00001',
    ]);
  });

  it('are those that are named, whatever their names, and all below a prefix that is named', async () => {
    const keys = ['_raw/.x/a', '_raw/.x/_b', 'out/_SUCCESS'];
    expect(await keysRead(keys, ['s3://data/out/_SUCCESS', 's3://data/_raw/.x/'])).toEqual([
      'out/_SUCCESS',
      '_raw/.x/a',
    ]);
  });

  it('must be more than what is passed over', async () => {
    await expect(keysRead(['out/_SUCCESS', 'out/.x'], ['s3://data/out/'])).rejects.toMatchObject({
      name: 'InvalidInput',
      message:
        'stages[0].inputs[0].s3[0]: there is no object under s3://data/out/ but those whose names begin with "_" or ".", which are passed over',
      details: { field: 'stages[0].inputs[0].s3[0]' },
    });
  });

  it('are in byte order of their keys where a listing is not, as that of a directory bucket', async () => {
    const system = new ScriptedSystem();
    for (const key of ['in/b', 'in/\u{1F600}', 'in/\uFF5E', 'in/a'])
      await system.objects.write({ bucket: 'data', key }, Buffer.from('x\n'));
    const list = MemoryObjectStore.prototype.list.bind(system.objects);
    Object.assign(system.objects, {
      list: async function* (ref: ObjectRef) {
        const all: ObjectInfo[] = [];
        for await (const info of list(ref)) all.push(info);
        yield* all.toReversed();
      },
    });
    expect(await sourcesOf(system, ['s3://data/in/'])).toEqual(['in/a', 'in/b', 'in/\uFF5E', 'in/\u{1F600}']);
  });
});
