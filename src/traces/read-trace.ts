import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { InvalidInputError } from '../contracts/errors.ts';
import { readAlibaba2017 } from './alibaba2017.ts';
import { readAlibaba2018 } from './alibaba2018.ts';
import type { Alibaba2018Options } from './alibaba2018.ts';
import { readCoflow } from './coflow.ts';
import { readHawk } from './hawk.ts';
import { readRumen } from './rumen.ts';
import { readSpark } from './spark.ts';
import { readSwim } from './swim.ts';
import type { SwimOptions } from './swim.ts';
import { readTpch } from './tpch.ts';
import type { TpchOptions } from './tpch.ts';
import type { TraceFormat } from './trace-formats.ts';
import type { TraceJob } from './trace-job.ts';

/** Options of those formats that leave something open; the others have none. */
export interface TraceOptions {
  readonly swim?: SwimOptions;
  readonly tpch?: TpchOptions;
  readonly alibaba?: Alibaba2018Options;
}

type Jobs = AsyncGenerator<TraceJob, void, void>;

/** File names by which a format's main table is found in a folder. */
const MAIN_FILE: Readonly<Record<TraceFormat, RegExp>> = {
  swim: /\.tsv(\.gz)?$/,
  coflow: /^FB.*\.txt(\.gz)?$/,
  tpch: /_tasks\.jsonl(\.gz)?$/,
  alibaba: /\.jsonl(\.gz)?$/,
  alibaba2017: /^batch_task\.csv(\.gz)?$/,
  rumen: /_attempts\.csv(\.gz)?$/,
  spark: /^tasks\.csv(\.gz)?$/,
  hawk: /\.tr(\.gz)?$/,
};

/**
 * Jobs of a trace, read as they are asked for. `path` is the trace's file, or its folder if that holds just one
 * such file; for `rumen` and `spark`, which have several tables, the folder or the table of attempts or tasks.
 * Throws `InvalidInputError`, with file and line where a line is at fault.
 */
export async function* readTrace(format: TraceFormat, path: string, options: TraceOptions = {}): Jobs {
  const file = await mainFile(format, path);
  yield* await openTrace(format, file, options);
}

async function openTrace(format: TraceFormat, file: string, options: TraceOptions): Promise<Jobs> {
  switch (format) {
    case 'swim':
      return readSwim(file, options.swim);
    case 'coflow':
      return readCoflow(file);
    case 'tpch':
      return readTpch(file, options.tpch);
    case 'alibaba':
      return readAlibaba2018(file, options.alibaba);
    case 'alibaba2017':
      return readAlibaba2017(file);
    case 'hawk':
      return readHawk(file);
    case 'spark':
      return readSpark({ tasks: file, stages: await sibling(file, 'stages.csv') });
    case 'rumen': {
      const set = basename(file).replace(MAIN_FILE.rumen, '');
      return readRumen({
        attempts: file,
        tasks: await sibling(file, `${set}_tasks.csv`),
        jobs: await sibling(file, `${set}_jobs.csv`),
      });
    }
  }
}

async function mainFile(format: TraceFormat, path: string): Promise<string> {
  const names = await namesIn(path);
  if (names === undefined) return path;
  const candidates = names.filter((name) => MAIN_FILE[format].test(name)).sort();
  const [only, ...more] = candidates;
  if (only === undefined) {
    throw new InvalidInputError(
      `no ${format} trace in ${path}; expected a file ${String(MAIN_FILE[format])}`,
      { path },
    );
  }
  if (more.length > 0) {
    throw new InvalidInputError(`several ${format} traces in ${path}: name one of ${candidates.join(', ')}`, {
      path,
    });
  }
  return join(path, only);
}

/** Names in a folder; undefined for a file. */
async function namesIn(path: string): Promise<readonly string[] | undefined> {
  try {
    return (await stat(path)).isDirectory() ? await readdir(path) : undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InvalidInputError(`cannot read trace ${path}: ${reason}`, { path }, { cause: error });
  }
}

/** The table `name` beside `file`, plain or gzip. */
async function sibling(file: string, name: string): Promise<string> {
  const names = (await namesIn(dirname(file))) ?? [];
  const found = [name, `${name}.gz`].find((candidate) => names.includes(candidate));
  if (found === undefined) throw new InvalidInputError(`${file} needs ${name} beside it`, { path: file });
  return join(dirname(file), found);
}
