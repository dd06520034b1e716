import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { taskFilesOf } from '../../../src/contracts/task-files.ts';
import { failureReading } from '../../../src/worker/failure-of.ts';
import type { TaskInput } from '../../../src/worker/operator.ts';
import { describeInputs, layFiles, taskVariables } from '../../../src/worker/task-files.ts';
import { recordsOf, seeded, sourceOf } from '../../support/operator-bench.ts';

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const file = (path: string, text: string, executable = false) => ({
  path,
  s3: `s3://data/input/files/${digestOf(text)}`,
  sha256: digestOf(text),
  executable,
});

async function scratch(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'outrider-files-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

const source = (uri: string, start: number, end: number): TaskInput => ({
  ...sourceOf(Buffer.from('x\n'), seeded(1)),
  objects: [{ uri, start, end, isPacked: false }],
});

describe('files of a stage', () => {
  it('are laid where they are said to be, executable where they were', async () => {
    const objects = new MemoryObjectStore();
    const [script, lib] = [file('run.sh', '#!/bin/sh\n', true), file('lib/words.txt', 'a\n')];
    await objects.write({ bucket: 'data', key: `input/files/${script.sha256}` }, Buffer.from('#!/bin/sh\n'));
    await objects.write({ bucket: 'data', key: `input/files/${lib.sha256}` }, Buffer.from('a\n'));
    const dir = await scratch();
    await layFiles(objects, [script, lib], dir);
    expect(await readFile(join(dir, 'lib/words.txt'), 'utf8')).toBe('a\n');
    expect((await stat(join(dir, 'run.sh'))).mode & 0o111).toBe(0o111);
    expect((await stat(join(dir, 'lib/words.txt'))).mode & 0o111).toBe(0);
  });

  it('are refused by name where one is gone or is another by now', async () => {
    const objects = new MemoryObjectStore();
    const gone = file('run.sh', 'x');
    await expect(layFiles(objects, [gone], await scratch())).rejects.toThrow(
      'file run.sh: there is no such object',
    );
    await objects.write({ bucket: 'data', key: `input/files/${gone.sha256}` }, Buffer.from('other'));
    await expect(layFiles(objects, [gone], await scratch())).rejects.toThrow(/^file run\.sh: its SHA-256 is/);
  });

  it.each([
    ['../up.sh', /options\.files\[0\]\.path must be a path below/],
    ['/etc/passwd', /options\.files\[0\]\.path must be a path below/],
    ['a//b', /options\.files\[0\]\.path must be a path below/],
  ])('are refused outside of the working directory: %s', (path, message) => {
    expect(() => taskFilesOf({ files: [{ ...file('x', 'x'), path }] })).toThrow(message);
  });

  it('are refused where a path comes twice', () => {
    expect(() => taskFilesOf({ files: [file('x', 'a'), file('x', 'b')] })).toThrow(
      'options.files must name each path once',
    );
  });
});

describe('what a program knows of its task', () => {
  it('is its place in the job, and the first object that it reads', () => {
    const inputs = [source('s3://books/a.txt', 64, 128), source('s3://books/b.txt', 0, 9)];
    expect(taskVariables('shout', { task: 3, attempt: 1 }, inputs)).toEqual({
      OUTRIDER_STAGE: 'shout',
      OUTRIDER_TASK: '3',
      OUTRIDER_ATTEMPT: '1',
      OUTRIDER_INPUT: 's3://books/a.txt',
      OUTRIDER_OFFSET: '64',
    });
  });

  it('names no object where it reads a stage', () => {
    const names = Object.keys(
      taskVariables('shout', { task: 0, attempt: 0 }, [recordsOf('map', [], seeded(1))]),
    );
    expect(names).toEqual(['OUTRIDER_STAGE', 'OUTRIDER_TASK', 'OUTRIDER_ATTEMPT']);
  });
});

describe('the place of a failure', () => {
  const failure = { cause: 'user-code', message: 'python3 ended with code 1: boom' } as const;

  it.each([
    [[source('s3://b/a.txt', 0, 6)], ' (reading s3://b/a.txt, bytes 0 to 6)'],
    [
      [source('s3://b/a', 5, 6), source('s3://b/b', 0, 6), source('s3://b/c', 0, 6)],
      ' (reading s3://b/a, bytes 5 to 6 and 2 more objects)',
    ],
    [[recordsOf('map', [], seeded(1))], ' (reading the output of map)'],
    [[], ''],
  ])('follows its message', (inputs, place) => {
    expect(failureReading(failure, describeInputs(inputs)).message).toBe(`${failure.message}${place}`);
  });

  it('is whole behind the longest message', () => {
    const long = { cause: 'user-code', message: 'x'.repeat(1_000) } as const;
    const { message } = failureReading(long, describeInputs([source('s3://b/a.txt', 0, 6)]));
    expect(message).toHaveLength(1_000);
    expect(message).toMatch(/x… \(reading s3:\/\/b\/a\.txt, bytes 0 to 6\)$/);
  });

  it('is left to messages that name their object, and to failures that are not about the input', () => {
    const named = { cause: 'user-code', message: 's3://b/a.txt:4: no number' } as const;
    expect(failureReading(named, 'reading s3://b/a.txt')).toEqual(named);
    const stored = { cause: 'storage', message: 'no answer' } as const;
    expect(failureReading(stored, 'reading s3://b/a.txt')).toEqual(stored);
  });
});
