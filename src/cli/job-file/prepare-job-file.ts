import { access } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { JobSpecInput } from '../../contracts/job-spec.ts';
import { uriOf } from '../../contracts/keys.ts';
import { nearMiss } from '../../contracts/known-fields.ts';
import { limits } from '../../contracts/limits.ts';
import { carriedKey } from '../../contracts/task-files.ts';
import type { DescribedInput, DescribedStage, JobDescription } from '../../dataflow/runtime.ts';
import { type Carried, carriedOf } from '../carried.ts';
import { badInput, systemReason } from '../failures.ts';
import { checkFormats } from '../input-formats.ts';
import type { JobOptions } from '../job-options.ts';
import type { LocalFile } from '../local-inputs.ts';
import {
  commonOptions,
  definedOf,
  limitsOf,
  type PrepareContext,
  refuseForeignOptions,
  type Side,
  sizesFor,
  standIn,
  standInBucket,
  takeInputs,
  type UncheckedJob,
  workerOf,
} from '../prepare-inputs.ts';
import { objectsBehind } from '../remote-inputs.ts';
import { bundleModule } from './bundle-job.ts';
import { checkTypes } from './check-types.ts';
import { describeBundle } from './describe-bundle.ts';
import { hasTypes } from './is-job-file.ts';

const known: ReadonlySet<string> = new Set([
  'input',
  'skipBadRecords',
  'partitions',
  'splitSize',
  ...commonOptions,
]);
/** The input that `--input` gives without a name. */
const mainInput = 'input';

type SourceInput = Extract<DescribedInput, { kind: 'source' }>;

/**
 * A job file: its types are checked, it is bundled, loaded and asked for its graph, before anything starts.
 *
 * @throws InvalidInputError with file and line of what is wrong.
 */
export async function prepareJobFile(
  path: string,
  options: JobOptions,
  context: PrepareContext,
): Promise<UncheckedJob> {
  refuseForeignOptions(options, known, 'a job file', path);
  const file = resolve(context.cwd, path);
  await access(file).catch((error: unknown) => {
    throw badInput(`job file ${path} cannot be read: ${systemReason(error)}`, error);
  });
  const [types, loaded] = await Promise.allSettled([hasTypes(file) ? checkTypes(file) : true, load(file)]);
  // A wrong type tells more than what comes of it when the file is loaded.
  if (types.status === 'rejected') throw types.reason;
  if (loaded.status === 'rejected') throw loaded.reason;
  if (!types.value) {
    context.note?.(
      `types of ${path} are not checked: there is no typescript in its project (npm install --save-dev typescript)`,
    );
  }
  const { job, bundle } = loaded.value;
  const sets: (readonly LocalFile[])[] = [];
  const sides = await takeSources(job, { path, file, options, context, sets });
  const sizes = sizesFor(options, context, sets);
  return {
    sets,
    carried: [bundle],
    checkInputs: () => checkSources(job, { sides, sets, path, objects: context.objects }),
    specWith: (uris, dataBucket = standInBucket) => {
      const place = (input: SourceInput): string[] => {
        const side = sides.get(placeName(input));
        const staged = side?.set === undefined ? [] : [uris[side.set] ?? standIn(side.set)];
        return [...(side?.uris ?? []), ...staged];
      };
      return specOf(job, { bundle, dataBucket, place, sizes, options, context });
    },
  };
}

async function load(file: string): Promise<{ readonly job: JobDescription; readonly bundle: Carried }> {
  const bytes = await bundleModule(file, 'job');
  return { job: await describeBundle(bytes, basename(file)), bundle: carriedOf(bytes) };
}

const sourcesOf = ({ stages }: JobDescription): readonly SourceInput[] =>
  stages.flatMap(({ inputs }) => inputs.filter((input) => input.kind === 'source'));

/** What tells inputs apart: their paths, or the name under which the command gives them. */
const placeName = ({ paths, input }: SourceInput): string =>
  paths.length === 0 ? `--input ${input}` : JSON.stringify(paths);

/** The files and addresses of each input, by `placeName`. */
async function takeSources(
  job: JobDescription,
  {
    path,
    file,
    options,
    context,
    sets,
  }: {
    path: string;
    file: string;
    options: JobOptions;
    context: PrepareContext;
    sets: (readonly LocalFile[])[];
  },
): Promise<ReadonlyMap<string, Side>> {
  const sources = sourcesOf(job);
  const given = givenInputs(path, options.input, sources);
  const sides = new Map<string, Side>();
  for (const source of sources) {
    const name = placeName(source);
    if (sides.has(name)) continue;
    const { paths, input } = source;
    const isNamed = paths.length === 0;
    const entries = isNamed ? (given.get(input) ?? []) : paths;
    const option = isNamed ? '--input' : `read.${source.format} in ${path}`;
    const cwd = isNamed ? context.cwd : dirname(file);
    if (entries.length === 0) throw missingInput(path, input);
    sides.set(name, await takeInputs(option, entries, { ...context, cwd }, sets));
  }
  return sides;
}

/** Looks at the beginnings of the files that each source reads. */
async function checkSources(
  job: JobDescription,
  {
    sides,
    sets,
    path,
    objects,
  }: {
    readonly sides: ReadonlyMap<string, Side>;
    readonly sets: readonly (readonly LocalFile[])[];
    readonly path: string;
    readonly objects: PrepareContext['objects'];
  },
): Promise<void> {
  for (const source of sourcesOf(job)) {
    const { format, header, columns, paths, input } = source;
    const side = sides.get(placeName(source));
    const files = [...(sets[side?.set ?? -1] ?? []), ...(await objectsBehind(objects, side?.uris ?? []))];
    const reading = `read.${format} in ${path}`;
    await checkFormats(files, {
      format,
      header,
      option: paths.length > 0 ? reading : input === mainInput ? '--input' : `--input ${input}=`,
      formatOption: `a reader in ${path} for`,
      columns: columns.map((name) => ({ name, option: `columns of ${reading}` })),
    });
  }
}

const missingInput = (path: string, input: string): Error =>
  input === mainInput
    ? badInput(`${path} needs --input: files, directories or patterns`)
    : badInput(`${path} reads an input named "${input}": give it with --input ${input}=<files>`);

/** `--input` by name; entries without a name are the main input's. A name is only one that the job reads. */
function givenInputs(
  path: string,
  entries: readonly string[],
  sources: readonly SourceInput[],
): ReadonlyMap<string, readonly string[]> {
  const names = sources.filter(({ paths }) => paths.length === 0).map(({ input }) => input);
  const given = new Map<string, string[]>();
  for (const entry of entries) {
    const cut = entry.indexOf('=');
    const name = cut < 0 ? undefined : entry.slice(0, cut);
    const isNamed = name !== undefined && names.includes(name);
    const input = isNamed ? name : mainInput;
    if (!isNamed && !names.includes(mainInput)) throw unreadInput(path, entry, name, names);
    given.set(input, [...(given.get(input) ?? []), isNamed ? entry.slice(cut + 1) : entry]);
  }
  return given;
}

function unreadInput(path: string, entry: string, name: string | undefined, names: readonly string[]): Error {
  if (names.length === 0) return badInput(`--input ${entry}: ${path} names all of its inputs by itself`);
  const distinct = [...new Set(names)];
  const meant = name === undefined ? undefined : nearMiss(name, distinct);
  const hint = meant === undefined ? '' : `; did you mean ${meant}=?`;
  return badInput(
    `--input ${entry}: ${path} reads inputs by name: ${distinct.map((each) => `--input ${each}=<files>`).join(' ')}${hint}`,
  );
}

interface SpecParts {
  readonly bundle: Carried;
  readonly dataBucket: string;
  readonly place: (input: SourceInput) => string[];
  readonly sizes: { readonly partitions?: number; readonly splitBytes?: number };
  readonly options: JobOptions;
  readonly context: PrepareContext;
}

function specOf(job: JobDescription, parts: SpecParts): JobSpecInput {
  const { options, context, sizes } = parts;
  const { settings } = job;
  const partitions =
    (options.partitions === undefined ? settings.partitions : undefined) ??
    sizes.partitions ??
    limits.defaultPartitions;
  return {
    version: 1,
    name: job.name,
    stages: job.stages.map((stage) => stageOf(stage, job, partitions, parts)),
    ...definedOf({
      deadline: settings.deadline,
      deadlineKind: settings.deadlineKind,
      admission: settings.admission,
      budget: settings.budget,
      onBudget: settings.onBudget,
      policy: settings.policy,
    }),
    ...limitsOf(options),
    ...definedOf({ policy: options.policy ?? settings.policy, output: context.output }),
  };
}

function stageOf(
  { name, inputs, isShuffled, parts, cutInputs }: DescribedStage,
  { graph, settings }: JobDescription,
  partitions: number,
  { bundle, dataBucket, place, sizes, options }: SpecParts,
): JobSpecInput['stages'][number] {
  const worker = { ...settings.worker, ...workerOf(options) };
  return {
    name,
    code: { s3: uriOf({ bucket: dataBucket, key: carriedKey(bundle.sha256) }), sha256: bundle.sha256 },
    options: { stage: name, graph, partitions },
    inputs: inputs.map((input) => {
      if (input.kind === 'stage') return { stage: input.stage, pattern: input.pattern };
      const { format, header, multiline, onBadRecord, splitBytes } = input;
      const size = options.splitSize === undefined ? (splitBytes ?? sizes.splitBytes) : sizes.splitBytes;
      return {
        s3: place(input),
        format,
        ...(format === 'csv' ? { header, multiline } : {}),
        onBadRecord: options.skipBadRecords === true ? ('skip' as const) : onBadRecord,
        ...definedOf({ splitBytes: size }),
      };
    }),
    ...(isShuffled ? { partitions: parts ?? partitions } : {}),
    ...(cutInputs === undefined ? {} : { cutInputs: [...cutInputs] }),
    ...(Object.keys(worker).length === 0 ? {} : { worker }),
  };
}
