import { isDeepStrictEqual } from 'node:util';
import type { DeadlineTerms, JobSpecInput, OnBudget, WorkerSize } from '../contracts/job-spec.ts';
import { parseUri } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { Carried } from './carried.ts';
import { badInput } from './failures.ts';
import { jobOptionsSchema, type JobOptions } from './job-options.ts';
import { findLocalFiles, type LocalFile } from './local-inputs.ts';
import { checkDeadline, parseBudget, parseSize, parseWeight, parseWhole } from './quantities.ts';

/*
 * What preparing a job of any kind needs: where its inputs are, how they are cut, and what options say that all take.
 */

/** A job whose options and local inputs have been checked; nothing of it has started. */
export interface PreparedJob {
  /** Sets of local files that must be uploaded first. */
  readonly sets: readonly (readonly LocalFile[])[];
  /** What must be in the data bucket besides, under its content. */
  readonly carried: readonly Carried[];
  /** The spec, with `uris[i]` (a prefix) in place of `sets[i]`, and what is carried in `dataBucket`. */
  specWith(uris: readonly string[], dataBucket?: string): JobSpecInput;
}

/** A job whose local inputs were not looked into yet: what is wrong with its options comes first. */
export interface UncheckedJob extends PreparedJob {
  readonly checkInputs?: () => Promise<void>;
}

export interface PrepareContext {
  readonly cwd: string;
  /** Whether inputs may be local files, s3:// addresses, or both. */
  readonly inputs: 'local' | 's3' | 'any';
  /** `s3://bucket/prefix/` for the output, where the user names one. */
  readonly output?: string;
  /** Where the objects of addresses may be looked into before anything starts; absent: they are not. */
  readonly objects?: ObjectStore;
  /** Tasks that will run at once, by which small inputs are cut; the spec's defaults where it is absent. */
  readonly slots?: number;
  /** Takes a remark for the user, who may go on. */
  readonly note?: (text: string) => void;
}

/** Stands for inputs whose place in S3 is not known yet, so that a spec can be checked before anything starts. */
export const standInBucket = 'outrider-local';
export const standIn = (index: number): string => `s3://${standInBucket}/input/${String(index)}/`;

/** Inputs of one side: addresses as they are, and the number of the set that holds its local files. */
export interface Side {
  readonly uris: readonly string[];
  readonly set: number | undefined;
}

export async function takeInputs(
  option: string,
  inputs: readonly string[],
  context: PrepareContext,
  sets: (readonly LocalFile[])[],
): Promise<Side> {
  const uris = inputs.filter(isAddress);
  const paths = inputs.filter((input) => !isAddress(input));
  refusePlace(option, uris[0], paths[0], context);
  const wrong = uris.find((uri) => parseUri(uri) === undefined);
  if (wrong !== undefined)
    throw badInput(
      `${option} ${wrong} must look like s3://bucket/key, or s3://bucket/prefix/ for all below it`,
    );
  if (paths.length === 0) return { uris, set: undefined };
  return { uris, set: sets.push(await findLocalFiles(option, paths, context.cwd)) - 1 };
}

const isAddress = (input: string): boolean => input.startsWith('s3://');

export function refusePlace(
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

export function limitsOf(options: JobOptions): DeadlineTerms & {
  deadline?: string;
  budget?: number;
  onBudget?: OnBudget;
  guaranteedSlots?: number;
  weight?: number;
  storage?: JobOptions['storage'];
} {
  const { guaranteedSlots, weight, deadlineKind, admission, storage } = options;
  return {
    ...definedOf({ deadlineKind, admission, storage }),
    ...(options.deadline === undefined ? {} : { deadline: checkDeadline(options.deadline) }),
    ...(options.budget === undefined ? {} : { budget: parseBudget(options.budget) }),
    ...(options.onBudget === undefined ? {} : { onBudget: options.onBudget }),
    ...(guaranteedSlots === undefined
      ? {}
      : {
          guaranteedSlots: parseWhole('--guaranteed-slots', guaranteedSlots, 1, limits.guaranteedSlots),
        }),
    ...(weight === undefined ? {} : { weight: parseWeight(weight) }),
  };
}

export function workerOf({
  worker,
  workerSize,
}: JobOptions): { kind?: 'lambda' | 'fargate'; size?: WorkerSize } | undefined {
  if (worker === undefined && workerSize === undefined) return undefined;
  return { ...definedOf({ kind: worker, size: workerSize }) };
}

const smallestSplitBytes = 1024 * 1024;
const splitsPerSlot = 3;
const bytesPerPartition = 64 * 1024 * 1024;
const mostPartitions = 64;

/** Cuts small local inputs so that every slot has work; what the user says goes first. */
export function sizesFor(
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

const unsetOptions: Readonly<Record<string, unknown>> = jobOptionsSchema.parse({});

/** Options that every job takes, whatever it says of itself. */
export const commonOptions: ReadonlySet<string> = new Set([
  'deadline',
  'deadlineKind',
  'admission',
  'budget',
  'onBudget',
  'guaranteedSlots',
  'weight',
  'policy',
  'storage',
  'worker',
  'workerSize',
]);

/** Refuses options that `kind` of job does not take: it says by itself what they would say. */
export function refuseForeignOptions(
  options: JobOptions,
  taken: ReadonlySet<string>,
  kind: string,
  path: string,
): void {
  const given: Readonly<Record<string, unknown>> = options;
  for (const name of Object.keys(jobOptionsSchema.shape)) {
    const isUnset = given[name] === undefined || isDeepStrictEqual(given[name], unsetOptions[name]);
    if (isUnset || taken.has(name)) continue;
    const option = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw badInput(
      `${name === 'header' ? '--no-header' : option} cannot go with ${kind}: ${path} says it by itself`,
    );
  }
}

/** The same object without the fields that are undefined. */
export function definedOf<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}
