import { InvalidInputError } from '../contracts/errors.ts';
import type { DeadlineTerms, OnBudget, WorkerSize } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import type { PolicyName } from '../contracts/policy-names.ts';
import { compileGraph, type CompiledStage } from './compile.ts';
import { checkWhole, Output } from './dataset.ts';

/** What a job may say about how it runs; the command line's options go before these. */
export interface JobSettings extends DeadlineTerms {
  /** From submission to published output, such as `10m`. */
  readonly deadline?: string;
  /** Dollars that the job may cost. */
  readonly budget?: number;
  /** At the budget: go on with one attempt of each task, or stop. */
  readonly onBudget?: OnBudget;
  /** How stragglers are treated. */
  readonly policy?: PolicyName;
  /** Tasks that read a shuffle, and parts of the output. */
  readonly partitions?: number;
  /**
   * That its functions keep nothing from one record to the next: what they give depends on the record alone. Then an attempt
   * of a task that reads files, and loses its place or its time, hands on what it has done, and the next one reads the rest.
   */
  readonly resumes?: boolean;
  readonly worker?: { readonly kind?: 'lambda' | 'fargate'; readonly size?: WorkerSize };
}

const known: readonly string[] = [
  ...['deadline', 'deadlineKind', 'admission', 'budget', 'onBudget'],
  ...['policy', 'partitions', 'resumes', 'worker'],
];

/** A whole job: what a job file exports as its default. */
export class Job<T = unknown> {
  readonly name: string;
  readonly settings: JobSettings;
  /** Its stages, each after those that it reads; the last one writes the output. */
  readonly stages: readonly CompiledStage[];
  /** Only there for types: the records that it writes. */
  declare readonly records: T;

  constructor(name: string, output: Output<T>, settings: JobSettings) {
    this.name = name;
    this.settings = settings;
    this.stages = compileGraph(output.node);
  }
}

/**
 * A job of this name that writes these records.
 *
 * @throws InvalidInputError where the name, the settings or the graph are wrong.
 */
export function job<T>(name: string, output: Output<T>, settings: JobSettings = {}): Job<T> {
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]{0,47}$/.test(name)) {
    throw new InvalidInputError(
      `the name of a job must be 1 to 48 of a-z, 0-9 and "-", and begin with a letter, not ${JSON.stringify(name)}`,
    );
  }
  if (!(output instanceof Output)) {
    throw new InvalidInputError(
      `job ${name} must be given what it writes: end its graph with write.text(), write.ndjson() or write.csv(columns)`,
    );
  }
  const foreign = Object.keys(settings).find((field) => !known.includes(field));
  if (foreign !== undefined)
    throw new InvalidInputError(`job ${name} has no setting ${foreign}: it takes ${known.join(', ')}`);
  if (typeof (settings.resumes ?? false) !== 'boolean')
    throw new InvalidInputError(`the setting resumes of job ${name} must be true or false`);
  if (settings.partitions !== undefined)
    checkWhole(`the setting partitions of job ${name}`, settings.partitions, limits.partitions);
  return new Job<T>(name, output, settings);
}
