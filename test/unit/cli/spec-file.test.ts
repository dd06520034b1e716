import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadSpecFile } from '../../../src/cli/spec-file.ts';
import { describeFailure, exitCodeOf } from '../../../src/cli/failures.ts';
import { scratchDir } from './fixtures.ts';

describe('a spec file', () => {
  it.each([
    ['deep.json', '['.repeat(90_000) + ']'.repeat(90_000), 'nests no deeper than 64 levels'],
    ['open.json', '{"stages":'.repeat(15_000), 'nests no deeper than 64 levels'],
    ['half.json', '{"name":"\\ud800"}', 'halves of surrogate pairs'],
    ['huge.json', '{"budget":1e999}', 'range of doubles'],
    ['twice.json', '{"stages":[{"inputs":[],"inputs":[]}]}', 'says "stages[0].inputs" twice'],
    ['list.json', '[]', 'must hold one object'],
    ['null.json', 'null', 'must hold one object'],
    ['word.json', '"words"', 'must hold one object'],
    ['text.json', 'name: words', 'must be JSON'],
    ['long.json', `"${'x'.repeat(9_500_000)}"`, 'longer than 200000 bytes'],
  ])('that is wrong is bad input, in one line: %s', async (name, text, part) => {
    const directory = await scratchDir();
    await writeFile(join(directory, name), text);
    const error: unknown = await loadSpecFile(name, directory).catch((cause: unknown) => cause);
    expect(exitCodeOf(error)).toBe(2);
    const line = describeFailure(error, {});
    expect(line).toContain(name);
    expect(line).toContain(part);
    expect(line).not.toContain('\n');
    expect(line.length).toBeLessThan(500);
  });

  it('may begin with a byte order mark', async () => {
    const directory = await scratchDir();
    await writeFile(join(directory, 'mark.json'), '\uFEFF{"name":"words"}');
    expect((await loadSpecFile('mark.json', directory)).withUris([], [])).toEqual({ name: 'words' });
  });
});
