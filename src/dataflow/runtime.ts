import { InvalidInputError } from '../contracts/errors.ts';
import { fnv1a } from '../contracts/fnv1a.ts';
import type { SourceInput } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import type { Operator, TaskContext, TaskInput } from '../worker/operator.ts';
import { Chain, type SideTable } from './chain.ts';
import {
  type CompiledStage,
  cutInputsOf,
  isShuffled,
  mayBeResumed,
  type Pattern,
  type Program,
} from './compile.ts';
import { readHead, type Take } from './heads.ts';
import { Job, type JobSettings } from './job.ts';
import { emitBounds, sampleKeys, sendToShares } from './range-sort.ts';
import { takingGood } from './skipping.ts';
import { tailWriter, type TailWriter } from './tails.ts';
import { TaskView } from './task-view.ts';
import { keptValue } from './value-codec.ts';

/** An input of a stage, as data. */
export type DescribedInput =
  | (Pick<SourceInput, 'format' | 'header' | 'onBadRecord' | 'multiline'> & {
      readonly kind: 'source';
      readonly paths: readonly string[];
      /** Columns that the job uses; none where it does not say. */
      readonly columns: readonly string[];
      readonly input: string;
      readonly splitBytes?: number;
    })
  | { readonly kind: 'stage'; readonly stage: string; readonly pattern: Pattern };

export interface DescribedStage {
  readonly name: string;
  readonly inputs: readonly DescribedInput[];
  /** Whether its output has partitions, and how many where the job says so. */
  readonly isShuffled: boolean;
  readonly parts?: number;
  /** Its inputs of which a heavy partition may be read by several tasks, a part each. */
  readonly cutInputs?: readonly number[];
}

/** A job without its functions: what a spec is made of. */
export interface JobDescription {
  readonly name: string;
  readonly settings: JobSettings;
  readonly stages: readonly DescribedStage[];
  /** Stands for the shape of the graph: the same wherever the job file is run. */
  readonly graph: string;
}

/** Throws `InvalidInputError` where it is no job. */
export function describeJob(job: unknown): JobDescription {
  if (!(job instanceof Job)) {
    throw new InvalidInputError('the default export must be a job: export default job(name, output)');
  }
  const { name, settings, stages } = job;
  const described = stages.map((stage): DescribedStage => {
    const inputs = stage.inputs.map((input): DescribedInput => {
      if (input.kind === 'stage') return { kind: 'stage', stage: input.stage.name, pattern: input.pattern };
      const { format, header, multiline, onBadRecord, paths, columns, input: named, splitBytes } = input.node;
      const reading = { format, header, multiline, onBadRecord, columns };
      const size = splitBytes === undefined ? {} : { splitBytes };
      return { kind: 'source', ...reading, paths, input: named, ...size };
    });
    const parts = stage.parts === undefined ? {} : { parts: stage.parts };
    const cutInputs = cutInputsOf(stage);
    const cut = cutInputs === undefined ? {} : { cutInputs };
    return { name: stage.name, inputs, isShuffled: isShuffled(stage, stages), ...parts, ...cut };
  });
  return { name, settings, stages: described, graph: shapeOf(stages) };
}

/** Kinds and names alone: paths and settings may differ without a stage doing anything else. */
const shapeOf = (stages: readonly CompiledStage[]): string =>
  fnv1a(
    JSON.stringify(
      stages.map(({ name, inputs, program }) => [
        name,
        inputs.map((input) =>
          input.kind === 'stage' ? [input.stage.name, input.pattern] : input.node.format,
        ),
        program.kind === 'flow'
          ? [program.head.kind, program.steps.map(({ kind }) => kind), program.tail.kind]
          : program.kind,
      ]),
    ),
  )
    .toString(16)
    .padStart(8, '0');

/** What a stage's options say: which stage of which graph it is, and into how many parts a sort is cut. */
interface StageOptions {
  readonly stage: string;
  readonly graph: string;
  readonly partitions: number;
}

/** The operator that runs the stages of a job; which one, its options say. */
export function operatorOf(job: unknown): Operator {
  return {
    check(options) {
      stageOf(job, options as unknown as StageOptions);
    },
    resumes: (options) =>
      job instanceof Job &&
      job.settings.resumes === true &&
      mayBeResumed(stageOf(job, options as unknown as StageOptions)),
    run(context) {
      const options = context.options as unknown as StageOptions;
      return runStage(stageOf(job, options), context, options.partitions);
    },
  };
}

function stageOf(job: unknown, { stage: name, graph }: StageOptions): CompiledStage {
  if (!(job instanceof Job)) throw new InvalidInputError('the default export must be a job');
  const stage = job.stages.find((each) => each.name === name);
  if (stage !== undefined && shapeOf(job.stages) === graph) return stage;
  throw new InvalidInputError(
    'the job makes another graph here than where it was submitted: it must not depend on time, chance, files or the environment',
  );
}

/** Runs one task of a stage. `partitions` is that of the whole job. */
export async function runStage(
  stage: CompiledStage,
  context: TaskContext,
  partitions: number = limits.defaultPartitions,
  tailOf = tailWriter,
): Promise<void> {
  const { program } = stage;
  switch (program.kind) {
    case 'flow':
      return runFlow(program, context, tailOf);
    case 'sample':
      return sampleKeys(context);
    case 'bounds':
      return emitBounds(context, stage.parts ?? partitions);
    case 'range':
      return sendToShares(context);
  }
}

async function runFlow(
  { head, steps, tail }: Extract<Program, { kind: 'flow' }>,
  context: TaskContext,
  tailOf: typeof tailWriter,
): Promise<void> {
  const view = new TaskView(context);
  const writer = tailOf(tail, context.output, view, context.kept !== undefined);
  const sides = new Map<number, SideTable>();
  for (const step of steps) {
    const side = step.kind === 'probe' ? context.inputs[step.input] : undefined;
    if (step.kind === 'probe' && side !== undefined) sides.set(step.input, await sideTable(side));
  }
  const onBad = head.kind === 'source' ? context.inputs[0]?.onBadValue : undefined;
  const take =
    onBad === undefined
      ? takingAll(new Chain(steps, view, (record, isLent) => writer.push(record, isLent), sides), writer)
      : takingGood(steps, view, { writer, sides, onBad });
  try {
    await readHead(head, context.inputs, view, take);
    view.atEnd();
    await writer.finish();
    // That there is something to go on with is all that whoever does needs to know.
    context.keep?.({});
  } catch (error) {
    throw view.located(error);
  }
}

const takingAll =
  (chain: Chain, writer: TailWriter): Take =>
  (record) =>
    chain.push(record) ? settle(chain, writer) : undefined;

/** Makes room, and goes on with the record at which there was none. */
async function settle(chain: Chain, writer: TailWriter): Promise<void> {
  do await writer.drain();
  while (chain.resume());
}

async function sideTable(input: TaskInput): Promise<SideTable> {
  const table = new Map<string, unknown[]>();
  for await (const batch of input.records()) {
    for (const { key, value } of batch) {
      const name = key.toString('latin1');
      const records = table.get(name);
      if (records === undefined) table.set(name, [keptValue(value)]);
      else records.push(keptValue(value));
    }
  }
  return table;
}
