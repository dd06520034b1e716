import { gzipSync } from 'node:zlib';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { readTrace } from '../../../src/traces/read-trace.ts';
import type { TraceFormat } from '../../../src/traces/trace-formats.ts';
import { fixture, folderWith, jobsOf } from './trace-files.ts';

/** The message with which a trace of this text is refused, its folder left out. */
async function refusal(
  format: TraceFormat,
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<string> {
  const folder = await folderWith(files);
  const [name = ''] = Object.keys(files);
  try {
    await jobsOf(format, join(folder, name));
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInputError);
    return error instanceof Error ? error.message.replaceAll(`${folder}/`, '') : '';
  }
  return 'was accepted';
}

const BATCH = 'create_s,end_s,job,task,instances,status\n';

describe('a bad line is named with its file and number', () => {
  it.each<[TraceFormat, string, string, string]>([
    [
      'swim',
      't.tsv',
      'a\t1\t1\t0\t0\t0\nb\t1\t1\t0\t0\n',
      't.tsv:2: 5 fields; expected id, submit, gap, input, shuffle and output, by tabs',
    ],
    ['swim', 't.tsv', '\n\na\t1\t1\tmany\t0\t0\n', 't.tsv:3: input bytes is "many"; expected a number'],
    ['swim', 't.tsv', 'a\t1\t1\t-5\t0\t0', 't.tsv:1: input bytes is -5; expected at least 0'],
    ['swim', 't.tsv', 'a\t1\t1\t1.5\t0\t0', 't.tsv:1: input bytes is 1.5; expected a whole number'],
    [
      'swim',
      't.tsv',
      'a\t1\t1\t1000000000000000\t0\t0',
      't.tsv:1: 7450581 tasks in a stage; the limit is 1000000',
    ],
    ['coflow', 't.txt', '', 't.txt:1: file is empty; expected a coflow trace'],
    ['coflow', 't.txt', '4 2\n1 0 1 0 1 1:5', 't.txt:1: promises 2 shuffles; 1 follow'],
    ['coflow', 't.txt', '4 1\n1 0 1 4 1 1:5', 't.txt:2: rack 4 is none of the 4, counted from 0'],
    ['coflow', 't.txt', '4 1\n1 0 1 3 2 1:5', 't.txt:2: 6 fields; 1 mappers and 2 reducers need 7'],
    ['coflow', 't.txt', '4 1\n1 0 1 3 1 1:5:6', 't.txt:2: reducer is 1:5:6; expected rack:MB'],
    ['hawk', 't.tr', '5 2 1 1', 't.tr:1: 1 durations; expected 2'],
    ['hawk', 't.tr', '5 1 1 0x10', 't.tr:1: duration is "0x10"; expected a number'],
    ['alibaba', 't.jsonl', '{"id":0,', 't.jsonl:1: not a JSON document'],
    [
      'alibaba',
      't.jsonl',
      '{"id":0,"stages":[[1,-2]],"edges":[]}',
      't.jsonl:1: stages.0.1: Too small: expected number to be >=0',
    ],
    [
      'alibaba',
      't.jsonl',
      '{"id":0,"stages":[[1,2],[1,2]],"edges":[[0,1],[1,0]]}',
      't.jsonl:1: edges form a cycle, or name a stage that is not there',
    ],
    [
      'alibaba',
      't.jsonl',
      '{"id":0,"stages":[[1,2]],"edges":[[0,1]]}',
      't.jsonl:1: edge leads to stage 1, which is not there',
    ],
    ['alibaba', 't.jsonl', '{"id":0,"stages":[[0,2]],"edges":[]}', 't.jsonl:1: no stage has instances'],
    [
      'tpch',
      't.jsonl',
      '{"size":"2g","query":1,"edges":[[0,7]],"stages":[{"id":0,"tasks":1,"ms_by_executors":{"2":{"first":[1],"rest":[]}}}]}',
      't.jsonl:1: edge 0 to 7 names a stage that is not there',
    ],
    ['alibaba2017', 't.csv', '', 't.csv:1: file is empty; expected create_s,end_s,job,task,instances,status'],
    [
      'alibaba2017',
      't.csv',
      'create_s,end_s,job,task\n',
      't.csv:1: header lacks instances, status; expected create_s,end_s,job,task,instances,status',
    ],
    ['alibaba2017', 't.csv', `${BATCH}1,2,3\n`, 't.csv:2: row has 3 fields; the header has 6'],
    ['alibaba2017', 't.csv', `${BATCH}1,2,3,4,0,Failed\n`, 't.csv:2: instances is 0; expected at least 1'],
    [
      'alibaba2017',
      't.csv',
      `${BATCH}1,2,3,4,1,Failed\n1,2,5,4,1,Failed\n1,2,3,5,1,Failed\n`,
      't.csv:4: rows of job 3 are not together',
    ],
  ])('%s: %s %j', async (format, name, text, message) => {
    expect(await refusal(format, { [name]: text })).toBe(message);
  });

  it('counts lines across reads of a large file, with either line end', async () => {
    const good = 'a\t1\t1\t0\t0\t0\r\n'.repeat(20_000);
    expect(await refusal('swim', { 't.tsv.gz': gzipSync(`${good}b\r\n`) })).toMatch(
      /^t\.tsv\.gz:20001: 1 fields/,
    );
  });

  it('names the table among several', async () => {
    const jobs = 'job,submit_ms\n1,0\n';
    const tasks = 'job,type,task,replica_hosts\n1,x,0,\n';
    expect(
      await refusal('rumen', { 's_attempts.csv': 'job\n', 's_jobs.csv': jobs, 's_tasks.csv': tasks }),
    ).toBe('s_tasks.csv:2: type is "x"; expected m or r');
    expect(await refusal('rumen', { 's_attempts.csv': 'job\n', 's_jobs.csv': jobs })).toBe(
      's_attempts.csv needs s_tasks.csv beside it',
    );
  });
});

describe('files that cannot be read', () => {
  it('says which file is missing', async () => {
    const folder = await folderWith({});
    await expect(jobsOf('swim', join(folder, 'none.tsv'))).rejects.toThrow(
      /^cannot read trace .*none\.tsv: ENOENT/,
    );
  });

  it('refuses a gzip file that is cut short, or is none', async () => {
    const packed = gzipSync('a\t1\t1\t0\t0\t0\n'.repeat(1000));
    expect(await refusal('swim', { 't.tsv.gz': packed.subarray(0, -12) })).toBe(
      'cannot read trace t.tsv.gz: unexpected end of file',
    );
    expect(await refusal('swim', { 't.tsv.gz': 'plain' })).toBe(
      'cannot read trace t.tsv.gz: incorrect header check',
    );
  });

  it('asks which one where a folder holds several, and says what it looked for where it holds none', async () => {
    const folder = await folderWith({ 'b.tr': '', 'a.tr.gz': '' });
    await expect(jobsOf('hawk', folder)).rejects.toThrow(
      `several hawk traces in ${folder}: name one of a.tr.gz, b.tr`,
    );
    await expect(jobsOf('swim', folder)).rejects.toThrow(`no swim trace in ${folder}; expected a file`);
  });
});

it('reads no further than it is asked', async () => {
  const folder = await folderWith({ 't.tsv': 'a\t1\t1\t0\t0\t0\nbad\n' });
  for await (const job of readTrace('swim', join(folder, 't.tsv'))) {
    expect(job.id).toBe('a');
    break;
  }
});

it('finds the only trace of a folder', async () => {
  expect(await jobsOf('rumen', fixture('rumen'))).toHaveLength(2);
});
