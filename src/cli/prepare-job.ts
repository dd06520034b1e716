import { checkSpec } from '../app/check-spec.ts';
import { InvalidInputError } from '../contracts/errors.ts';
import { parseInput } from '../contracts/invalid.ts';
import { jobSpecSchema, type JobSpecInput } from '../contracts/job-spec.ts';
import { builtinJob, builtinJobNames, type BuiltinJobName } from '../operators/builtin-jobs.ts';
import { operators } from '../operators/registry.ts';
import { parseAggregates } from './aggregates.ts';
import { ownValue } from '../lib/own.ts';
import { type CarriedFile, readCarriedFiles, taskFileOf } from './carried.ts';
import { badInput } from './failures.ts';
import { checkFormats, type InputFile } from './input-formats.ts';
import { checkSides, formatsOf, refuseUnread } from './job-formats.ts';
import { isJobFile } from './job-file/is-job-file.ts';
import { joinSizes, mostBroadcastBytes } from './join-sizes.ts';
import { optionOfField, type JobOptions } from './job-options.ts';
import { findLocalFiles, type LocalFile } from './local-inputs.ts';
import {
  commonOptions,
  definedOf,
  limitsOf,
  type PrepareContext,
  type PreparedJob,
  refuseForeignOptions,
  refusePlace,
  type Side,
  type UncheckedJob,
  sizesFor,
  standIn,
  standInBucket,
  takeInputs,
  workerOf,
} from './prepare-inputs.ts';
import { withHeldBytes } from './packed-inputs.ts';
import { objectsBehind } from './remote-inputs.ts';
import { loadSpecFile } from './spec-file.ts';

/**
 * Reads what the user wants: a built-in job with its options, a job file, or a spec file.
 *
 * @throws InvalidInputError with one line that names the option, file or field that is wrong.
 */
export async function prepareJob(
  job: string,
  options: JobOptions,
  context: PrepareContext,
): Promise<PreparedJob> {
  const builtin = builtinJobNames.find((name) => name === job);
  const prepared = await (builtin === undefined
    ? prepareFile(job, options, context)
    : prepareBuiltin(builtin, options, context));
  const spec = prepared.specWith(prepared.sets.map((_, index) => standIn(index)));
  if (builtin === undefined) check(spec);
  else checkBuiltin(spec);
  await prepared.checkInputs?.();
  return prepared;
}

async function prepareFile(
  path: string,
  options: JobOptions,
  context: PrepareContext,
): Promise<UncheckedJob> {
  if (!isJobFile(path)) return prepareSpec(path, options, context);
  // A bundler comes with it, which no other job needs.
  const { prepareJobFile } = await import('./job-file/prepare-job-file.ts');
  return prepareJobFile(path, options, context);
}

/** Every check that needs no service: fields, the graph of stages, the policy, the options of operators. */
function check(input: JobSpecInput): void {
  checkSpec(parseInput(jobSpecSchema, input), {
    checkOperator: (operator, options) => {
      operators[operator].check(options);
    },
    // The service knows, and says so when the job is submitted.
    givesCredentials: true,
    hasZonal: true,
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
): Promise<UncheckedJob> {
  if (options.input.length === 0) throw badInput(`${name} needs --input: files, directories or patterns`);
  const sets: (readonly LocalFile[])[] = [];
  const left = await takeInputs('--input', options.input, context, sets);
  const right =
    options.right === undefined ? undefined : await takeInputs('--right', options.right, context, sets);
  const filesOf = async (side: Side | undefined): Promise<readonly InputFile[]> => [
    ...(sets[side?.set ?? -1] ?? []),
    ...(await objectsBehind(context.objects, side?.uris ?? [])),
  ];
  const sides = { left: await filesOf(left), right: await filesOf(right) };
  const formats = await formatsOf(name, options, sides);
  refuseUnread(name, options, formats);
  const read = { ...readOptions(options), ...formats, ...sizesFor(options, context, sets) };
  const asked = {
    partitions: options.partitions !== undefined,
    splitBytes: options.splitSize !== undefined,
    slots: context.slots,
  };
  const isToldHow = options.broadcast !== undefined || options.partitions !== undefined;
  const seen = {
    left: { uris: left.uris, files: sides.left },
    right: {
      uris: right?.uris ?? [],
      files: isToldHow ? sides.right : await withHeldBytes('--right', sides.right, mostBroadcastBytes),
    },
  };
  const fields = name === 'join' ? { ...read, ...joinSizes(seen, read, asked) } : read;
  const place = (side: Side, uris: readonly string[]): string[] => [
    ...side.uris,
    ...(side.set === undefined ? [] : [uris[side.set] ?? standIn(side.set)]),
  ];
  return {
    sets,
    carried: [],
    checkInputs: () => checkSides(name, options, sides, formats),
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
    ...(options.multiline === true ? { multiline: true } : {}),
    ...(options.skipBadRecords === true ? { onBadRecord: 'skip' as const } : {}),
    ...(firstKey === undefined ? {} : { key: otherKeys.length === 0 ? firstKey : [firstKey, ...otherKeys] }),
    ...(options.agg === undefined
      ? {}
      : { aggregates: options.agg.flatMap((list) => parseAggregates(list)) }),
    ...limitsOf(options),
  };
}

async function prepareSpec(
  path: string,
  options: JobOptions,
  context: PrepareContext,
): Promise<UncheckedJob> {
  const spec = await loadSpecFile(path, context.cwd);
  refuseForeignOptions(options, commonOptions, 'a spec file', path);
  const sets: (readonly LocalFile[])[] = [];
  const looks: (() => Promise<void>)[] = [];
  for (const { where, paths, uris, format, header } of spec.inputs) {
    refusePlace(where, uris[0], paths[0], context);
    const files = paths.length === 0 ? [] : await findLocalFiles(where, paths, spec.directory);
    const wanted = { option: where, formatOption: '"format":', format, header, columns: [] };
    looks.push(async () => {
      await checkFormats([...files, ...(await objectsBehind(context.objects, uris))], wanted);
    });
    if (paths.length > 0) sets.push(files);
  }
  const files: (readonly CarriedFile[])[] = [];
  for (const { where, paths } of spec.files) files.push(await readCarriedFiles(where, paths, spec.directory));
  // A bundler comes with it, which few specs need.
  const { bundleSpecCode, withSpecCode } = await import('./job-file/spec-code.ts');
  const code = await bundleSpecCode(spec.withUris([], []), spec.directory);
  const worker = workerOf(options);
  const changes = { ...limitsOf(options), ...definedOf({ policy: options.policy, output: context.output }) };
  return {
    sets,
    carried: [...files.flat(), ...code.values()],
    checkInputs: async () => {
      for (const look of looks) await look();
    },
    specWith: (uris, dataBucket = standInBucket) => {
      const placed = files.map((each) => each.map((file) => taskFileOf(file, dataBucket)));
      const document = withSpecCode(spec.withUris(uris, placed), code, dataBucket);
      const parsed = parseInput(jobSpecSchema, document);
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
