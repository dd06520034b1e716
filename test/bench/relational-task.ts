/**
 * A job over CSV by one worker, without services: `relational-task.ts <join|broadcast|groupby|reference-join|reference-groupby>
 * <directory> <MB of the worker> [rows]`. Prints CPU seconds by stage and peak memory as JSON; `rows` does without DuckDB.
 */
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { OneWorker } from '../support/one-worker.ts';

const [what = '', dir = '', memoryMb = '1769', way = ''] = process.argv.slice(2);

const left = { inputs: ['s3://input/left.csv'], format: 'csv' } as const;
const join = { ...left, right: ['s3://input/right.csv'], leftKey: 'customer', rightKey: 'id' } as const;
const jobs = {
  join: () => builtinJob('join', join),
  broadcast: () => builtinJob('join', { ...join, broadcast: true }),
  groupby: () =>
    builtinJob('groupby', {
      ...left,
      key: 'customer',
      aggregates: [
        { op: 'count' },
        { op: 'sum', column: 'amount' },
        { op: 'avg', column: 'amount' },
        { op: 'max', column: 'amount' },
      ],
    }),
};

const worker = new OneWorker(
  dir,
  Number(memoryMb),
  way === 'rows' ? { memoryBytes: 0, threads: 1 } : undefined,
);
const make = Object.entries(jobs).find(([name]) => name === what)?.[1];
if (make === undefined) throw new Error(`there is no job ${what}`);
const parts = await worker.run(make());
const { user, system } = process.cpuUsage();
console.log(
  JSON.stringify({
    cpuS: (user + system) / 1e6,
    peakMb: Math.round(process.resourceUsage().maxRSS / 1024),
    stages: worker.costs,
    notes: worker.notes,
    parts,
  }),
);
