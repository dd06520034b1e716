import { isDeepStrictEqual } from 'node:util';
import { checkSpec } from '../app/submit-job.ts';
import { InvalidInputError } from '../contracts/errors.ts';
import { parseInput } from '../contracts/invalid.ts';
import { jobSpecSchema, type JobSpecInput } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import { builtinJob, builtinJobNames, type BuiltinJobName } from '../operators/builtin-jobs.ts';
import { operators } from '../operators/registry.ts';
import { parseAggregates } from './aggregates.ts';
import { ownValue } from '../lib/own.ts';
import { badInput } from './failures.ts';
import { jobOptionsSchema, optionOfField, type JobOptions } from './job-options.ts';
import { findLocalFiles, type LocalFile } from './local-inputs.ts';
import { checkDeadline, parseBudget, parseSize, parseWhole } from './quantities.ts';
import { loadSpecFile } from './spec-file.ts';

/** A job whose options and local inputs have been checked; nothing of it has started. */
export interface PreparedJob {
  /** Sets of local files that must be uploaded first. */
  readonly sets: readonly (readonly LocalFile[])[];
  /** The spec, with `uris[i]` (a prefix) in place of `sets[i]`. */
  specWith(uris: readonly string[]): JobSpecInput;
}

export interface PrepareContext {
  readonly cwd: string;
  /** Whether inputs may be local files, s3:// addresses, or both. */
  readonly inputs: 'local' | 's3' | 'any';
  /** `s3://bucket/prefix/` for the output, where the user names one. */
  readonly output?: string;
  /** Tasks that will run at once, by which small inputs are cut; the spec's defaults where it is absent. */
  readonly slots?: number;
}

/** Stands for inputs whose place in S3 is not known yet, so that a spec can be checked before anything starts. */
const standIn = (index: number): string => `s3://outrider-local/input/${String(index)}/`;

/**
 * Reads what the user wants: a built-in job with its options, or a spec file.
 *
 * @throws InvalidInputError with one line that names the option, file or field that is wrong.
 */
export async function prepareJob(
  job: string,
  options: JobOptions,
  context: PrepareContext,
): Promise<PreparedJob> {
  const builtin = builtinJobNames.find((name) => name === job);
  const prepared =
    builtin === undefined
      ? await prepareSpec(job, options, context)
      : await prepareBuiltin(builtin, options, context);
  const spec = prepared.specWith(prepared.sets.map((_, index) => standIn(index)));
  if (builtin === undefined) check(spec);
  else checkBuiltin(spec);
  return prepared;
}

/** Every check that needs no service: fields, the graph of stages, the policy, the options of operators. */
function check(input: JobSpecInput): void {
  checkSpec(parseInput(jobSpecSchema, input), {
    checkOperator: (operator, options) => {
      operators[operator].check(options);
    },
    // The service knows, and says so when the job is submitted.
    givesCredentials: true,
  });
}

/** The same for a job whose stages the user has never seen: messages name options and not fields of stages. */
function checkBuiltin(input: JobSpecInput): void {
  try {
    check(input);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const message = error.message
      .replace(/^stages\[\d+\](?: \([a-z0-9-]+\): |\.)/, '')
      .replace(
        /\boptions\.aggregates\.(\d+)\.as\b/,
        (_, index: string) => `--agg: the name of item ${String(Number(index) + 1)} (after " as ")`,
      )
      .replace(/\boptions\.(\w+)/, (text, field: string) => ownValue(optionOfField, field) ?? text);
    throw new InvalidInputError(message, error.details, { cause: error });
  }
}

async function prepareBuiltin(
  name: BuiltinJobName,
  options: JobOptions,
  context: PrepareContext,
): Promise<PreparedJob> {
  if (options.input.length === 0) throw badInput(`${name} needs --input: files, directories or patterns`);
  const sets: (readonly LocalFile[])[] = [];
  const left = await takeInputs('--input', options.input, context, sets);
  const right =
    options.right === undefined ? undefined : await takeInputs('--right', options.right, context, sets);
  const fields = { ...readOptions(options), ...sizesFor(options, context, sets) };
  const place = (side: Side, uris: readonly string[]): string[] => [
    ...side.uris,
    ...(side.set === undefined ? [] : [uris[side.set] ?? standIn(side.set)]),
  ];
  return {
    sets,
    specWith: (uris) =>
      translated(name, options, () =>
        builtinJob(name, {
          inputs: place(left, uris),
          ...(right === undefined ? {} : { right: place(right, uris) }),
          ...fields,
          ...(context.output === undefined ? {} : { output: context.output }),
        }),
      ),
  };
}

/** Inputs of one side: addresses as they are, and the number of the set that holds its local files. */
interface Side {
  readonly uris: readonly string[];
  readonly set: number | undefined;
}

async function takeInputs(
  option: string,
  inputs: readonly string[],
  context: PrepareContext,
  sets: (readonly LocalFile[])[],
): Promise<Side> {
  const uris = inputs.filter(isAddress);
  const paths = inputs.filter((input) => !isAddress(input));
  refusePlace(option, uris[0], paths[0], context);
  if (paths.length === 0) return { uris, set: undefined };
  return { uris, set: sets.push(await findLocalFiles(option, paths, context.cwd)) - 1 };
}

const isAddress = (input: string): boolean => input.startsWith('s3://');

function refusePlace(
  where: string,
  uri: string | undefined,
  path: string | undefined,
  context: PrepareContext,
): void {
  if (uri !== undefined && context.inputs === 'local') {
    throw badInput(`${where} ${uri} must be a local path here: "outrider submit" takes s3:// addresses`);
  }
  if (path !== undefined && context.inputs === 's3') {
    throw badInput(`${where} ${path} must be an s3:// address: only a local stack takes local files`);
  }
}

type BuiltinFields = Omit<Parameters<typeof builtinJob>[1], 'inputs' | 'right'>;

function readOptions(options: JobOptions): BuiltinFields {
  const { pattern, ignoreCase, invert, count, format, rightFormat, rows, leftKey, rightKey, broadcast } =
    options;
  const worker = workerOf(options);
  const [firstKey, ...otherKeys] = options.key ?? [];
  return {
    ...definedOf({
      pattern,
      ignoreCase,
      invert,
      count,
      format,
      rightFormat,
      rows,
      leftKey,
      rightKey,
      broadcast,
    }),
    ...definedOf({ policy: options.policy, worker }),
    ...(options.header ? {} : { header: false }),
    ...(options.skipBadRecords === true ? { onBadRecord: 'skip' as const } : {}),
    ...(firstKey === undefined ? {} : { key: otherKeys.length === 0 ? firstKey : [firstKey, ...otherKeys] }),
    ...(options.agg === undefined
      ? {}
      : { aggregates: options.agg.flatMap((list) => parseAggregates(list)) }),
    ...limitsOf(options),
  };
}

function limitsOf(options: JobOptions): { deadline?: string; budget?: number } {
  return {
    ...(options.deadline === undefined ? {} : { deadline: checkDeadline(options.deadline) }),
    ...(options.budget === undefined ? {} : { budget: parseBudget(options.budget) }),
  };
}

function workerOf({ worker, workerSize }: JobOptions): BuiltinFields['worker'] {
  if (worker === undefined && workerSize === undefined) return undefined;
  return { ...definedOf({ kind: worker, size: workerSize }) };
}

const smallestSplitBytes = 1024 * 1024;
const splitsPerSlot = 3;
const bytesPerPartition = 64 * 1024 * 1024;
const mostPartitions = 64;

/** Cuts small local inputs so that every slot has work; what the user says goes first. */
function sizesFor(
  options: JobOptions,
  { slots }: PrepareContext,
  sets: readonly (readonly LocalFile[])[],
): { partitions?: number; splitBytes?: number } {
  const { partitions, splitSize } = options;
  const totalBytes = sets.flat().reduce((total, { sizeBytes }) => total + sizeBytes, 0);
  const isSized = slots !== undefined && sets.length > 0;
  const splitBytes = isSized
    ? Math.min(
        limits.defaultSplitBytes,
        Math.max(smallestSplitBytes, Math.ceil(totalBytes / (slots * splitsPerSlot))),
      )
    : undefined;
  const parts = isSized
    ? Math.min(mostPartitions, Math.max(slots, Math.ceil(totalBytes / bytesPerPartition)))
    : undefined;
  return definedOf({
    splitBytes: splitSize === undefined ? splitBytes : parseSize('--split-size', splitSize),
    partitions:
      partitions === undefined ? parts : parseWhole('--partitions', partitions, 1, limits.partitions),
  });
}

async function prepareSpec(path: string, options: JobOptions, context: PrepareContext): Promise<PreparedJob> {
  const spec = await loadSpecFile(path, context.cwd);
  refuseBuiltinOptions(path, options);
  const sets: (readonly LocalFile[])[] = [];
  for (const { where, paths, uris } of spec.inputs) {
    refusePlace(where, uris[0], paths[0], context);
    if (paths.length > 0) sets.push(await findLocalFiles(where, paths, spec.directory));
  }
  const worker = workerOf(options);
  const changes = { ...limitsOf(options), ...definedOf({ policy: options.policy, output: context.output }) };
  return {
    sets,
    specWith: (uris) => {
      const parsed = parseInput(jobSpecSchema, spec.withUris(uris));
      if (context.inputs === 'local' && parsed.output !== undefined) {
        throw badInput(`output in ${path} must be left out here: "outrider run" writes to --output`);
      }
      const stages =
        worker === undefined
          ? parsed.stages
          : parsed.stages.map((stage) => ({ ...stage, worker: { ...stage.worker, ...worker } }));
      return { ...parsed, stages, ...changes };
    },
  };
}

const specOptions: ReadonlySet<string> = new Set(['deadline', 'budget', 'policy', 'worker', 'workerSize']);
const unsetOptions: Readonly<Record<string, unknown>> = jobOptionsSchema.parse({});

/** A spec says by itself what the other options would say. */
function refuseBuiltinOptions(path: string, options: JobOptions): void {
  const given: Readonly<Record<string, unknown>> = options;
  for (const name of Object.keys(jobOptionsSchema.shape)) {
    const isUnset = given[name] === undefined || isDeepStrictEqual(given[name], unsetOptions[name]);
    if (isUnset || specOptions.has(name)) continue;
    const option = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw badInput(
      `${name === 'header' ? '--no-header' : option} cannot go with a spec file: ${path} says it by itself`,
    );
  }
}

/** Errors of built-in jobs name fields; here they name options. */
function translated<T>(job: string, options: JobOptions, build: () => T): T {
  try {
    return build();
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const { field } = error.details;
    const option = typeof field === 'string' ? ownValue(optionOfField, field) : undefined;
    if (option === undefined || typeof field !== 'string') throw error;
    const message = error.message.includes(' takes no ')
      ? `${job} takes no ${option}: see "outrider run --help"`
      : field === 'aggregates' && options.agg === undefined
        ? `${job} needs --agg: such as "count,sum:amount"`
        : error.message.replace(new RegExp(`\\b${field}\\b`), option);
    throw new InvalidInputError(message, error.details, { cause: error });
  }
}

/** The same object without the fields that are undefined. */
function definedOf<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}
