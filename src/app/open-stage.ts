import { invariant } from '../contracts/errors.ts';
import { inputManifestKey } from '../contracts/keys.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Plan, PlannedInput, StagePlan } from '../contracts/plan.ts';
import type { TaskResult } from '../contracts/records.ts';
import type { EpochMs } from '../contracts/units.ts';
import { type EdgeLine, edgeManifest } from '../core/model/edge-manifest.ts';
import { openStage, stageAt } from '../core/model/job-state.ts';
import { type Manifest, manifestOf } from '../core/model/manifest.ts';
import type { JobState } from '../core/model/job-view.ts';
import { sharesOf } from '../core/model/split-stage.ts';

type ByteSpan = AttemptPayload['inputs'][number];

/** What the tasks of an open stage read: for each input, the manifest's key and the offsets of its lines. */
export interface OpenStage {
  readonly inputs: readonly {
    readonly key: string;
    readonly offsets: readonly number[];
    readonly shared: boolean;
  }[];
  /** Manifests to be written before a task is launched. */
  readonly manifests: readonly Manifest[];
}

type UpstreamPlan = Extract<PlannedInput, { kind: 'stage' }>;

function resultsOf(state: JobState, plan: Plan, input: UpstreamPlan): TaskResult[] {
  const producer = plan.stages.findIndex(({ description }) => description.name === input.stage);
  return stageAt(state, producer).tasks.map((task) => {
    invariant(task.result !== undefined, 'a stage opened before its input was complete', {
      input: input.stage,
    });
    return task.result;
  });
}

function bytesOf({ segments }: EdgeLine): number {
  let sum = 0;
  for (const { length, head } of segments) if (head !== true) sum += length;
  return sum;
}

function sourceInput(plan: Plan, stage: StagePlan, number: number): OpenStage['inputs'][number] {
  const key = inputManifestKey(plan, stage.description.name, number);
  return { key, offsets: stage.manifestOffsets[number] ?? [], shared: false };
}

/**
 * Opens a stage in the state and works out what its tasks read. Derived from committed results alone, so that
 * whoever opens the stage again (a takeover) writes the same bytes, unless outputs were lost since: then nothing is
 * launched by these lists, and the next ones are of another revision.
 */
export function prepareStage(state: JobState, plan: Plan, index: number, now: EpochMs): OpenStage {
  const stage = plan.stages[index];
  invariant(stage !== undefined, 'no such stage in the plan', { index });
  const { description } = stage;
  const shares = sharesOf(description.tasks, stageAt(state, index).splits ?? []);
  const inputBytes = shares.map(() => 0);
  const manifests: Manifest[] = [];
  const inputs = description.inputs.map((input, number) => {
    if (input.kind === 'source') return sourceInput(plan, stage, number);
    const lines = edgeManifest(description, input, resultsOf(state, plan, input), { number, shares });
    const shared = input.pattern === 'broadcast';
    const bytes = lines.map(bytesOf);
    for (const task of inputBytes.keys()) {
      inputBytes[task] = (inputBytes[task] ?? 0) + (bytes[shared ? 0 : task] ?? 0);
    }
    const { revision } = stageAt(state, index);
    const key = inputManifestKey(plan, description.name, number, revision);
    const { manifest, offsets } = manifestOf(key, lines);
    manifests.push(manifest);
    return { key: manifest.key, offsets, shared };
  });
  openStage(state, index, inputBytes, now);
  return { inputs, manifests };
}

/** Where task `task` finds its lines in the manifests of its inputs. */
export function spansOf(open: OpenStage, task: number): ByteSpan[] {
  return open.inputs.map(({ key, offsets, shared }) => {
    const line = shared ? 0 : task;
    const start = offsets[line];
    const end = offsets[line + 1];
    invariant(start !== undefined && end !== undefined, 'a manifest has no line for a task', { key, task });
    return { key, start, end };
  });
}
