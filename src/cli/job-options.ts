import type { Command } from 'commander';
import { Option } from 'commander';
import * as z from 'zod';
import {
  admissionChoices,
  deadlineKinds,
  onBudgetChoices,
  storageChoices,
  workerSizes,
} from '../contracts/job-spec.ts';
import { defaultPolicy, policyNames } from '../contracts/policy-names.ts';

/** Options that say what a job is to do, as commander gives them: text, not checked beyond their shape. */
export const jobOptionsSchema = z.object({
  input: z.array(z.string()).default([]),
  right: z.array(z.string()).optional(),
  pattern: z.string().optional(),
  ignoreCase: z.boolean().optional(),
  invert: z.boolean().optional(),
  count: z.boolean().optional(),
  format: z.enum(['text', 'ndjson', 'csv']).optional(),
  rightFormat: z.enum(['ndjson', 'csv']).optional(),
  header: z.boolean().default(true),
  multiline: z.boolean().optional(),
  skipBadRecords: z.boolean().optional(),
  rows: z.enum(['ndjson', 'csv']).optional(),
  key: z.array(z.string()).optional(),
  agg: z.array(z.string()).optional(),
  leftKey: z.string().optional(),
  rightKey: z.string().optional(),
  broadcast: z.boolean().optional(),
  partitions: z.string().optional(),
  splitSize: z.string().optional(),
  deadline: z.string().optional(),
  deadlineKind: z.enum(deadlineKinds).optional(),
  admission: z.enum(admissionChoices).optional(),
  budget: z.string().optional(),
  onBudget: z.enum(onBudgetChoices).optional(),
  guaranteedSlots: z.string().optional(),
  weight: z.string().optional(),
  policy: z.enum(policyNames).optional(),
  storage: z.enum(storageChoices).optional(),
  worker: z.enum(['lambda', 'fargate']).optional(),
  workerSize: z.enum(['small', 'medium', 'large', 'xlarge']).optional(),
});

export type JobOptions = z.output<typeof jobOptionsSchema>;

/** How each field of a built-in job is written on the command line, for messages. */
export const optionOfField: Readonly<Record<string, string>> = {
  inputs: '--input',
  right: '--right',
  pattern: '--pattern',
  ignoreCase: '--ignore-case',
  invert: '--invert',
  count: '--count',
  format: '--format',
  rightFormat: '--right-format',
  header: '--no-header',
  multiline: '--multiline',
  onBadRecord: '--skip-bad-records',
  rows: '--rows',
  key: '--key',
  aggregates: '--agg',
  leftKey: '--left-key',
  rightKey: '--right-key',
  broadcast: '--broadcast',
  partitions: '--partitions',
  splitBytes: '--split-size',
  deadline: '--deadline',
  deadlineKind: '--deadline-kind',
  admission: '--admission',
  budget: '--budget',
  onBudget: '--on-budget',
  guaranteedSlots: '--guaranteed-slots',
  weight: '--weight',
  policy: '--policy',
  storage: '--storage',
  worker: '--worker',
  output: '--output',
};

const policyOption = (): Option =>
  new Option('--policy <name>', `how stragglers are treated (default ${defaultPolicy})`).choices(policyNames);

/** Adds the options of a job to a command. `inputHelp` says what inputs may be there. */
export function addJobOptions(command: Command, inputHelp: string): Command {
  const size = Object.entries(workerSizes)
    .map(([name, memoryMb]) => `${name} ${String(memoryMb)} MB`)
    .join(', ');
  command
    .option('-i, --input <path...>', inputHelp)
    .option('--right <path...>', 'join: the right-hand inputs')
    .option('-e, --pattern <regex>', 'grep: an extended regular expression, as of grep -E')
    .option('--ignore-case', 'grep: small and capital letters are alike')
    .option('--invert', 'grep: lines that do not match')
    .option('--count', 'grep: matches by frequency and not lines')
    .addOption(
      new Option(
        '--format <format>',
        'of the inputs of groupby and join (default: as their names and beginnings say)',
      ).choices(['text', 'ndjson', 'csv']),
    )
    .addOption(
      new Option('--right-format <format>', 'join: of the right-hand inputs, where it differs').choices([
        'ndjson',
        'csv',
      ]),
    )
    .option('--no-header', 'csv files have no line of column names: columns are c0, c1, …')
    .option('--multiline', 'csv: quoted fields may hold line ends; files are read whole then')
    .option(
      '--skip-bad-records',
      'leave out records that cannot be read or used, and count them, instead of failing',
    )
    .addOption(
      new Option('--rows <format>', 'groupby, join: format of the output (default: as the input)').choices([
        'ndjson',
        'csv',
      ]),
    )
    .option('--key <column...>', 'groupby: the columns to group by')
    .option('--agg <list...>', 'groupby: such as "count,sum:amount,avg:price as mean"')
    .option('--left-key <column>', 'join: column of --input')
    .option('--right-key <column>', 'join: column of --right (default: as --left-key)')
    .option(
      '--broadcast',
      'join: every task holds all of --right, nothing is shuffled (default: of CSV up to 32 MB, without --partitions)',
    )
    .option('--partitions <n>', 'tasks that read a shuffle, and parts of the output')
    .option('--split-size <size>', 'bytes that one task reads, such as 32m')
    .option('--guaranteed-slots <n>', "slots that are the job's own before any are shared (default none)")
    .option('--weight <w>', 'its share of slots that are short, beside 1 of other jobs (default 1)')
    .addOption(policyOption())
    .addOption(
      new Option('--worker <kind>', 'what tasks run on (default lambda)').choices(['lambda', 'fargate']),
    )
    .addOption(
      new Option('--worker-size <size>', `${size} (default medium)`).choices(Object.keys(workerSizes)),
    );
  return addLimitOptions(command);
}

/** Adds what bounds a job in time and dollars, and where its intermediate data is. */
const addLimitOptions = (command: Command): Command =>
  command
    .addOption(
      new Option(
        '--storage <tier>',
        'where intermediate data is: standard, zonal (S3 Express One Zone, in the zone of each worker) or worker-local (with the workers that made it; wants --worker fargate; default standard)',
      ).choices(storageChoices),
    )
    .option('--deadline <time>', 'such as 90s, 10m or 2h; exit code 1 if the job misses it')
    .addOption(
      new Option(
        '--deadline-kind <kind>',
        'soft: the later the worse; hard: what is late is lost, and others come first (default soft)',
      ).choices(deadlineKinds),
    )
    .addOption(
      new Option(
        '--admission <what>',
        'a job whose forecast cannot meet its deadline beside others: refuse it, or run it without slots of its own (default refuse)',
      ).choices(admissionChoices),
    )
    .option(
      '--budget <dollars>',
      'what the job may cost: near it no copies are made, then no second attempts',
    )
    .addOption(
      new Option(
        '--on-budget <what>',
        'at the budget: finish with one attempt of each task, or stop the job (default finish)',
      ).choices(onBudgetChoices),
    );
