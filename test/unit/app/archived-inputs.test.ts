import { describe, expect, it } from 'vitest';
import { planJob } from '../../../src/app/plan-job.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { ObjectRef } from '../../../src/contracts/keys.ts';
import type { ObjectInfo } from '../../../src/ports/object-store.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

/** A system in whose bucket `data` the object `in/b` is archived. */
async function archived(): Promise<ScriptedSystem> {
  const system = new ScriptedSystem();
  for (const key of ['in/a', 'in/b'])
    await system.objects.write({ bucket: 'data', key }, Buffer.from('one two three'));
  const { objects } = system;
  const [head, list] = [objects.head.bind(objects), objects.list.bind(objects)];
  const told = <T extends ObjectInfo>(info: T): T =>
    info.key === 'in/b' ? { ...info, archive: 'GLACIER' } : info;
  Object.assign(objects, {
    head: async (ref: ObjectRef) => {
      const info = await head(ref);
      return info === undefined ? undefined : told(info);
    },
    list: async function* (ref: ObjectRef) {
      for await (const info of list(ref)) yield told(info);
    },
  });
  return system;
}

describe('an input that is archived', () => {
  it.each(['s3://data/in/', 's3://data/in/b'])(
    'is refused by field and name before anything runs (%s)',
    async (uri) => {
      const system = await archived();
      const { jobId } = await submitJob(system, {
        spec: { name: 'words', stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: [uri] }] }] },
      });
      await expect(planJob(system, jobId)).rejects.toMatchObject({
        name: 'InvalidInput',
        message:
          'stages[0].inputs[0].s3[0]: the object s3://data/in/b is archived (GLACIER); restore it first',
        details: { field: 'stages[0].inputs[0].s3[0]' },
      });
    },
  );
});
