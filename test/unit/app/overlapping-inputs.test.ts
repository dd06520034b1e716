import { expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { resolveSources } from '../../../src/app/plan-job.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import { uriOf } from '../../../src/contracts/keys.ts';

const keys = ['logs/2026/b.txt', 'logs/a.txt'];

/** The addresses of the objects that each input of one stage reads. */
async function readBy(...inputs: readonly string[][]): Promise<readonly (readonly string[])[]> {
  const objects = new MemoryObjectStore();
  for (const bucket of ['books', 'others'])
    for (const key of keys) await objects.write({ bucket, key }, Buffer.from(key));
  const spec = jobSpecSchema.parse({
    name: 'find',
    stages: [
      { name: 'find', operator: 'grep', options: { pattern: '.' }, inputs: inputs.map((s3) => ({ s3 })) },
    ],
  });
  const sources = await resolveSources(objects, { spec });
  return [...sources.values()].map((found) => found.map(uriOf));
}

const both = ['s3://books/logs/2026/b.txt', 's3://books/logs/a.txt'];

it.each([
  [
    'a prefix, one below it and an object of it',
    ['s3://books/logs/', 's3://books/logs/2026/', 's3://books/logs/a.txt'],
  ],
  ['one prefix twice', ['s3://books/logs/', 's3://books/logs/']],
  ['a whole bucket and an object of it', ['s3://books/', 's3://books/logs/a.txt']],
])('an object that several entries of an input name is read once: %s', async (_, entries) => {
  expect(await readBy(entries)).toEqual([both]);
});

it('is read where the first entry that names it stands', async () => {
  expect(await readBy(['s3://books/logs/a.txt', 's3://books/logs/'])).toEqual([[...both].reverse()]);
});

it('is another object in another bucket, and read again by another input', async () => {
  const others = ['s3://others/logs/2026/b.txt', 's3://others/logs/a.txt'];
  expect(await readBy(['s3://books/logs/', 's3://others/logs/'])).toEqual([[...both, ...others]]);
  expect(await readBy(['s3://books/logs/'], ['s3://books/logs/'])).toEqual([both, both]);
});
