import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import * as z from 'zod';
import {
  data,
  documents,
  examples,
  linesOf,
  pageranks,
  readability,
  sessions,
  speeches,
  tfIdf,
} from '../support/example-oracles.ts';
import { Workplace } from './command.ts';

it('gives for each example what an independent program gives', async () => {
  const place = await Workplace.make();
  await mkdir(place.path('speeches'));
  for (const name of documents) await copyFile(join(speeches, name), place.path('speeches', name));
  const local = place.start('local', '--slots', '2');
  await local.saying('Ctrl-C ends it.');

  /** Its output, made by several tasks. */
  const output = async (example: string, ...args: readonly string[]): Promise<string> => {
    const done = await place.run('submit', join(examples, example), ...args, '--wait', '--json', '--quiet');
    expect({ example, exitCode: done.exitCode, err: done.err }).toEqual({ example, exitCode: 0, err: '' });
    const { jobId } = z.object({ jobId: z.string() }).parse(JSON.parse(done.out));
    const fetched = await place.run('get', jobId, example);
    expect([fetched.exitCode, fetched.err]).toEqual([0, expect.any(String)]);
    expect(await readdir(place.path(example))).toContain('_SUCCESS');
    return (await place.parts(example)).toString();
  };
  const cut = ['--split-size', '16k', '--partitions', '3'];

  expect(await output('sessions.ts', '--input', data('access.log'), ...cut)).toBe(await sessions());
  expect(await output('tf-idf.ts', '--input', 'speeches', ...cut)).toBe(await tfIdf());

  const [header, ...rows] = linesOf(await output('pagerank.ts', '--input', data('links.csv'), ...cut));
  expect(header).toBe('page,rank');
  const ranks = new Map(rows.map((row) => row.split(',') as [string, string]));
  const expected = await pageranks();
  expect([...ranks.keys()]).toEqual([...expected.keys()].sort());
  for (const [page, rank] of expected) expect(Number(ranks.get(page))).toBeCloseTo(rank, 5);

  const latin1 = await readFile(data('addresses-latin1.txt'));
  expect(await output('to-utf8.json')).toBe(latin1.toString('latin1'));
  const scores = linesOf(await output('readability.json')).map((line): unknown => JSON.parse(line));
  const rated = (await readability()).map((each) => ({
    ...each,
    index: expect.closeTo(each.index, 2) as number,
  }));
  expect(scores).toEqual(rated);

  local.process.kill('SIGINT');
  expect((await local.finished).exitCode).toBe(0);
}, 900_000);
