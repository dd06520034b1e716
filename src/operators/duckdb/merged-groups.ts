import type { GroupForm } from '../group-lines.ts';
import type { Engine } from './engine.ts';
import { copyLines } from './group-file.ts';
import type { GroupFile } from './group-file.ts';
import { columnNumber, textTable } from './staged-csv.ts';

/** Merges the lines of each key, which have no lists, and writes them to `path` in byte order of their keys. */
export async function mergeGroupFile(
  engine: Engine,
  file: GroupFile,
  form: GroupForm,
  path: string,
): Promise<void> {
  const merged = [
    { type: 'BIGINT', by: 'sum' },
    ...form.columns.flatMap(({ isSummed, isRanked }) => [
      { type: 'BIGINT', by: 'sum' },
      ...(isSummed ? Array<Merged>(3).fill({ type: 'HUGEINT', by: 'sum' }) : []),
      ...(isRanked ? ['min', 'max'].map((by) => ({ type: 'DOUBLE', by })) : []),
    ]),
  ];
  const lists = Array<string>(form.lists).fill('VARCHAR');
  const table = textTable({
    ...file,
    fields: form.fields,
    delimiter: '\t',
    hasQuotes: false,
    types: ['VARCHAR', ...merged.map(({ type }) => type), ...lists],
  });
  const key = columnNumber(0);
  const fields = merged.map(({ by }, index) => `${by}(${columnNumber(index + 1)})`);
  const all = [key, ...fields, ...lists.map(() => "''")];
  await engine.run(copyLines(`SELECT ${all.join(', ')} FROM ${table} GROUP BY ${key} ORDER BY ${key}`, path));
}

interface Merged {
  readonly type: string;
  readonly by: string;
}
