import { mkdir, writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { Workplace } from './command.ts';

const objects = 3_000;

it('a job over thousands of small objects shares them among few tasks, and misses none', async () => {
  const place = await Workplace.make();
  const expected: string[] = [];
  for (let index = 0; index < objects; index++) {
    const folder = place.path('in', `${index % 30}`);
    if (index < 30) await mkdir(folder, { recursive: true });
    await writeFile(place.path('in', `${index % 30}`, `${index}.txt`), `of ${index}\nother\n`);
    expected.push(`of ${index}`);
  }
  const result = await place.run(
    ...[
      'run',
      'grep',
      '--pattern',
      '^of [0-9]+$',
      '--input',
      'in',
      '--output',
      'out',
      '--slots',
      '2',
      '--json',
    ],
  );
  expect(result.exitCode).toBe(0);
  const lines = (await place.parts('out')).toString().trim().split('\n');
  expect(lines.toSorted()).toEqual(expected.toSorted());
  const { stages, requests } = JSON.parse(result.out) as {
    stages: { tasks: number; bytesIn: number }[];
    requests: { s3: { get: number } };
  };
  // 256 to a task, each read once.
  expect(stages[0]?.tasks).toBe(Math.ceil(objects / 256));
  expect(requests.s3.get).toBeGreaterThanOrEqual(objects);
  expect(requests.s3.get).toBeLessThanOrEqual(1.05 * objects);
}, 300_000);
