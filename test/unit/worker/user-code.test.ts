import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { loadCode } from '../../../src/worker/user-code.ts';
import { inTempDir } from '../../support/worker-fixtures.ts';

const s3 = 's3://code/job.mjs';
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

async function load(source: string | undefined, sha256?: string): Promise<unknown> {
  const objects = new MemoryObjectStore();
  if (source !== undefined) await objects.write({ bucket: 'code', key: 'job.mjs' }, Buffer.from(source));
  return inTempDir((dir) => loadCode(objects, { s3, sha256: sha256 ?? digestOf(source ?? '') }, dir));
}

describe('loadCode', () => {
  it('gives the operator that a bundle exports by default', async () => {
    const operator = await load('export default { check() {}, async run() {} };');
    expect(operator).toMatchObject({
      check: expect.any(Function) as unknown,
      run: expect.any(Function) as unknown,
    });
  });

  it('imports a bundle once per store and digest', async () => {
    const objects = new MemoryObjectStore();
    const source = 'export default { check() {}, async run() {} };';
    await objects.write({ bucket: 'code', key: 'job.mjs' }, Buffer.from(source));
    const ref = { s3, sha256: digestOf(source) };
    const first = await inTempDir((dir) => loadCode(objects, ref, dir));
    await objects.remove('code', ['job.mjs']);
    expect(await inTempDir((dir) => loadCode(objects, ref, dir))).toBe(first);
  });

  it.each([
    ['export default 1;', undefined, /its default export must be an operator/],
    ['export const run = () => 1;', undefined, /its default export must be an operator/],
    ['export default {};', '0'.repeat(64), /its SHA-256 is [0-9a-f]{64}, the job says 0{64}/],
    [undefined, undefined, /there is no such object/],
    ['throw new Error("at import");', undefined, /at import/],
  ])('refuses %j', async (source, sha256, message) => {
    await expect(load(source, sha256)).rejects.toThrow(message);
  });
});
