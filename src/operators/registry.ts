import type { OperatorRegistry } from '../worker/operator.ts';
import { exec } from './exec.ts';
import { grep, grepCount } from './grep.ts';
import { groupbyMap, groupbyReduce } from './groupby.ts';
import { joinMap } from './join-map.ts';
import { joinProbe } from './join-probe.ts';
import { joinReduce } from './join.ts';
import { topCounts } from './rank.ts';
import { bounds, mergeLines, rangePartition, sample } from './sort.ts';
import { sql } from './sql.ts';
import { sumCounts, tokenize } from './wordcount.ts';

/** Every operator that a spec can name. */
export const operators: OperatorRegistry = {
  tokenize,
  'sum-counts': sumCounts,
  grep,
  'grep-count': grepCount,
  'top-counts': topCounts,
  sample,
  bounds,
  'range-partition': rangePartition,
  'merge-lines': mergeLines,
  'groupby-map': groupbyMap,
  'groupby-reduce': groupbyReduce,
  'join-map': joinMap,
  'join-reduce': joinReduce,
  'join-probe': joinProbe,
  sql,
  exec,
};
