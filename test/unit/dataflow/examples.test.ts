import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { expect, it } from 'vitest';
import { job, read } from 'outrider';
import { runJob } from 'outrider/testing';
import pagerank from '../../examples/pagerank.ts';
import sessionsJob from '../../examples/sessions.ts';
import { data, linesOf, pageranks, sessions } from '../../support/example-oracles.ts';

// As somebody tests a job of their own: on lists, in milliseconds.

it('finds the sessions that SQLite finds', async () => {
  const log = linesOf(await readFile(data('access.log'), 'utf8'));
  const { text, counters } = await runJob(sessionsJob, log, { tasks: 4, partitions: 3 });
  expect(text).toBe(await sessions());
  expect(counters).toEqual({ unreadable: 13 });
});

it('ranks pages as a plain script does', async () => {
  const links: unknown[] = parse(await readFile(data('links.csv')), { columns: true });
  const { records } = await runJob(pagerank, links);
  const expected = await pageranks();
  expect(records.map(({ page }) => page)).toEqual([...expected.keys()].sort());
  for (const { page, rank } of records) expect(Number(rank)).toBeCloseTo(expected.get(page) ?? NaN, 5);
});

it('knows one package, by whatever name it is imported', async () => {
  const own = job('own', read.text(join('some', 'file.txt')).write.text());
  expect((await runJob(own, { 'some/file.txt': ['a'] })).records).toEqual(['a']);
});
