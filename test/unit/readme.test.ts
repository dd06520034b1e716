import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, root), 'utf8');

/** Files that a page names, in backticks or as the target of a link. */
function filesNamedIn(text: string): readonly string[] {
  const quoted = [...text.matchAll(/`((?:src|cdk|functions|test|docs|examples)\/[\w./-]+\.\w+)`/g)];
  const linked = [...text.matchAll(/\]\((?!https?:|#)([^)\s#]+)(?:#[^)]*)?\)/g)];
  return [...quoted, ...linked].map(([, path = '']) => path);
}

describe('the pages for readers', () => {
  it.each(['README.md', 'SECURITY.md'])('name files that are there: %s', (page) => {
    const named = filesNamedIn(read(page));
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((path) => !existsSync(fileURLToPath(new URL(path, root))))).toEqual([]);
  });
});
