import { execFileSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { Workplace, type Finished } from './command.ts';

/** What the machine's own tools give, in the C locale. */
const shell = (place: Workplace, script: string): string =>
  execFileSync('/bin/sh', ['-c', script], {
    cwd: place.dir,
    encoding: 'latin1',
    env: { ...process.env, LC_ALL: 'C' },
    maxBuffer: 2 ** 28,
  });

const latin1 = async (place: Workplace, output: string): Promise<string> =>
  (await place.parts(output)).toString('latin1');
const sortedLines = (text: string): string => text.split('\n').sort().join('\n');

/** Lines of text with repeated words, odd white space, bytes that are no UTF-8, and no newline at the end. */
async function writeTexts(place: Workplace, lines: number): Promise<void> {
  await mkdir(place.path('texts/deep'), { recursive: true });
  const words = ['the', 'The', 'née', 'a\tb', 'x\u000bz', '', 'longer-word', '0', '\u00ff\u00fe'];
  const text = Array.from(
    { length: lines },
    (_, i) => `${words[(i * 7) % 9] ?? ''} ${String(i % 101)} ${words[i % 9] ?? ''}`,
  ).join('\n');
  await writeFile(place.path('texts/b.txt'), text, 'latin1');
  await writeFile(place.path('texts/deep/a.txt'), `error 17\r\nfine\nerror\u0000x\n`, 'latin1');
  await writeFile(place.path('texts/empty.txt'), '');
}

function expectDone({ exitCode, err }: Finished): void {
  expect({ exitCode, err: exitCode === 0 ? '' : err }).toEqual({ exitCode: 0, err: '' });
}

describe('outrider run', () => {
  it('counts words as tr, sort and uniq do, and leaves nothing behind but the output', async () => {
    const place = await Workplace.make();
    await writeTexts(place, 20_000);
    const result = await place.run(
      'run',
      'wordcount',
      '--input',
      'texts',
      '--output',
      'out',
      '--split-size',
      '64k',
      '--json',
    );
    expectDone(result);
    const expected = shell(
      place,
      String.raw`for file in texts/b.txt texts/deep/a.txt; do cat $file; echo; done | tr -s '[:space:]' '\n' | grep -av '^$' | sort | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)$/\2\t\1/'`,
    );
    expect(sortedLines(await latin1(place, 'out'))).toBe(sortedLines(expected));
    expect(JSON.parse(result.out)).toMatchObject({
      state: 'succeeded',
      policy: 'outrider',
      deadline: null,
      error: null,
      stages: [{ name: 'tokenize' }, { name: 'count' }],
    });
    expect(await readdir(place.path('out'))).toContain('_SUCCESS');
    expect(await readdir(place.temporary)).toEqual([]);
    await place.expectNoProcesses();
  });

  it('sorts and searches as sort and grep do', async () => {
    const place = await Workplace.make();
    await writeTexts(place, 5_000);
    expectDone(
      await place.run(
        'run',
        'sort',
        '--input',
        'texts',
        '--output',
        'sorted',
        '--partitions',
        '3',
        '--quiet',
      ),
    );
    // A newline is put where a file lacks its last one, as sort does with each of its files.
    expect(await latin1(place, 'sorted')).toBe(shell(place, 'sort texts/b.txt texts/deep/a.txt'));
    expectDone(
      await place.run('run', 'grep', '--pattern', 'error|^The .*7', '--input', 'texts', '--output', 'found'),
    );
    expect(await latin1(place, 'found')).toBe(
      shell(place, "grep -ahE 'error|^The .*7' texts/b.txt texts/deep/a.txt"),
    );
  });

  it('takes the output of one job for the input of the next', async () => {
    const place = await Workplace.make();
    await writeTexts(place, 500);
    const counting = ['run', 'wordcount', '--input', 'texts', '--output', 'counts', '--partitions', '2'];
    expectDone(await place.run(...counting));
    expectDone(await place.run('run', 'sort', '--input', 'counts', '--output', 'ranked'));
    expect(await latin1(place, 'ranked')).toBe(shell(place, 'sort counts/part-*'));
  });

  it('runs the same on Fargate workers', async () => {
    const place = await Workplace.make();
    await writeTexts(place, 500);
    expectDone(
      await place.run(
        'run',
        'sort',
        '--input',
        'texts',
        '--output',
        'out',
        '--worker',
        'fargate',
        '--partitions',
        '2',
      ),
    );
    expect(await latin1(place, 'out')).toBe(shell(place, 'sort texts/b.txt texts/deep/a.txt'));
  });

  it('fails a bad record with its file and line, exit code 1, and no output', async () => {
    const place = await Workplace.make();
    await writeFile(place.path('rows.ndjson'), '{"k":1}\n{"k":2}\nnot json\n');
    const result = await place.run(
      'run',
      'groupby',
      '--input',
      'rows.ndjson',
      '--format',
      'ndjson',
      '--key',
      'k',
      '--agg',
      'count',
      '--output',
      'out',
    );
    expect(result.exitCode).toBe(1);
    const line = result.err.split('\n').find((text) => text.startsWith('outrider: '));
    expect(line).toContain(`${place.path('rows.ndjson')}:3: `);
    expect(await readdir(place.dir)).not.toContain('out');
  });

  it('ends at an interrupt: job, processes and data are gone', async () => {
    const place = await Workplace.make();
    await writeTexts(place, 200_000);
    const started = place.start('run', 'sort', '--input', 'texts', '--output', 'out', '--split-size', '64k');
    await started.saying('job running');
    started.process.kill('SIGINT');
    expect((await started.finished).exitCode).toBe(130);
    expect(await readdir(place.dir)).not.toContain('out');
    expect(await readdir(place.temporary)).toEqual([]);
    await place.expectNoProcesses();
  });
});
