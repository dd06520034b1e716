import { invariant } from '../contracts/errors.ts';
import { codecOf, type PlannedInput, type SourceSegment } from '../contracts/plan.ts';
import { type AttemptPlan, isOfSources } from './attempt-plan.ts';
import { ExternalSort } from './external-sort.ts';
import type { InputCut } from './input-cut.ts';
import { dropMemory } from './kept-memory.ts';
import { type Operator, type OperatorRegistry, saysItResumes, type TaskInput } from './operator.ts';
import type { TaskAttempt, TaskHost } from './run-task.ts';
import type { Gate } from '../lib/gate.ts';
import { sourceInput, stageInput } from './task-input.ts';
import { type ClosableOutput, FinalOutput, SortedOutput, UnsortedOutput } from './task-output.ts';

/** How an input is opened. */
export interface OpeningInput {
  /** Its place in the plan. */
  readonly index: number;
  readonly gate: Gate;
  readonly scratchDir: string;
  readonly cut: InputCut | undefined;
}

/** An input of the task. */
export function openInput(
  host: TaskHost,
  { plan, meter, signal, check }: TaskAttempt,
  { index, gate, scratchDir, cut }: OpeningInput,
): TaskInput {
  const input = plan.inputs[index];
  invariant(input !== undefined, 'an input of the plan', { index });
  const { objects, sortMemoryBytes } = host;
  const stageInputs = plan.inputs.filter(({ planned }) => planned.kind === 'stage').length;
  const memoryBytes = Math.floor(sortMemoryBytes / Math.max(1, stageInputs));
  const onBytes = (count: number): void => {
    meter.bytesRead += count;
  };
  if (isOfSources(input)) {
    const { format, header, onBadRecord, multiline } = input.planned;
    const reach = cut?.watch(index, input.segments, (segment) => mayEndWithin(input.planned, segment));
    const reading = { objects, signal, onBytes, reach };
    const form = { format, header, onBadRecord, ...(multiline === undefined ? {} : { multiline }) };
    return sourceInput({ ...form, first: input.planned.first, segments: input.segments, reading, meter });
  }
  const { stage, pattern } = input.planned;
  const fetching = (request: () => Promise<Uint8Array>): Promise<Uint8Array> => meter.fetching(request);
  const checked = check === undefined ? {} : { check };
  const reading = { objects, gate, onBytes, fetching, memoryBytes, scratchDir, signal, ...checked };
  return stageInput({ stage, isMerged: pattern === 'all-to-all', segments: input.segments, reading, meter });
}

/**
 * Whether another attempt can go on where one of this task ends early: Parquet is read by places, in no order. Of user code
 * as far as its inputs are concerned: the rest it says itself once it is loaded.
 */
export function mayResume(operators: OperatorRegistry, { description, inputs }: AttemptPlan): boolean {
  const { operator, options } = description;
  const says = operator === undefined || saysItResumes(operators[operator], options, readsStages(inputs));
  return says && canBeCut(inputs);
}

/** Whether nothing but a word of the job is missing for that: its operator leaves it to the options of the stage. */
export function wouldResume({ resumes }: Operator, { inputs }: AttemptPlan): boolean {
  return typeof resumes === 'function' && !readsStages(inputs) && canBeCut(inputs);
}

const readsStages = (inputs: AttemptPlan['inputs']): boolean => !inputs.every(isOfSources);

function canBeCut(inputs: AttemptPlan['inputs']): boolean {
  const sources = inputs.filter(isOfSources);
  return sources.length > 0 && sources.every(({ planned }) => planned.format !== 'parquet');
}

/** Whether each line of a segment may be the last that is read of it: not where a record may go on behind it. */
const mayEndWithin = (
  { format, multiline }: Extract<PlannedInput, { kind: 'source' }>,
  segment: SourceSegment,
): boolean => codecOf(segment) === undefined && (format !== 'csv' || multiline === false);

/** Its output, of the kind that its stage has. */
export function openOutput(
  host: TaskHost,
  { plan, writer, meter, signal }: TaskAttempt,
  operator: Operator,
  scratchDir: string,
): ClosableOutput {
  const { output, partitions, options } = plan.description;
  if (output !== 'sorted') dropMemory();
  switch (output) {
    case 'final':
      return new FinalOutput(writer, meter);
    case 'unsorted':
      return new UnsortedOutput(writer, partitions, meter);
    case 'sorted': {
      const combine = operator.combiner?.(options);
      const sort = new ExternalSort({
        partitions,
        memoryBytes: host.sortMemoryBytes,
        combine,
        scratchDir,
        signal,
      });
      return new SortedOutput(sort, writer, partitions, meter);
    }
  }
}
