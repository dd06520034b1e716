import { invariant } from '../contracts/errors.ts';
import { inputManifestKey } from '../contracts/keys.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Plan, PlannedInput, StagePlan } from '../contracts/plan.ts';
import type { TaskResult } from '../contracts/records.ts';
import type { EpochMs } from '../contracts/units.ts';
import { edgeManifest } from '../core/model/edge-manifest.ts';
import { openStage, stageAt } from '../core/model/job-state.ts';
import { manifestOf } from '../core/model/plan-stages.ts';
import type { JobState } from '../core/model/job-view.ts';

type ByteSpan = AttemptPayload['inputs'][number];

/** What the tasks of an open stage read: for each input, the manifest's key and the offsets of its lines. */
export interface OpenStage {
  readonly inputs: readonly {
    readonly key: string;
    readonly offsets: readonly number[];
    readonly shared: boolean;
  }[];
  /** Manifests to be written before a task is launched. */
  readonly manifests: readonly { readonly key: string; readonly body: string }[];
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

function sourceInput(plan: Plan, stage: StagePlan, number: number): OpenStage['inputs'][number] {
  const key = inputManifestKey(plan, stage.description.name, number);
  return { key, offsets: stage.manifestOffsets[number] ?? [], shared: false };
}

/**
 * Opens a stage in the state and works out what its tasks read. Derived from committed results alone, so that
 * whoever opens the stage again (a takeover) writes the same bytes.
 */
export function prepareStage(state: JobState, plan: Plan, index: number, now: EpochMs): OpenStage {
  const stage = plan.stages[index];
  invariant(stage !== undefined, 'no such stage in the plan', { index });
  const { description } = stage;
  const inputBytes = Array.from({ length: description.tasks }, () => 0);
  const manifests: { key: string; body: string }[] = [];
  const inputs = description.inputs.map((input, number) => {
    if (input.kind === 'source') return sourceInput(plan, stage, number);
    const lines = edgeManifest(description, input, resultsOf(state, plan, input));
    const shared = input.pattern === 'broadcast';
    for (const task of inputBytes.keys()) {
      const segments = lines[shared ? 0 : task]?.segments ?? [];
      inputBytes[task] = segments.reduce((sum, { length }) => sum + length, inputBytes[task] ?? 0);
    }
    const { body, offsets } = manifestOf(lines);
    const key = inputManifestKey(plan, description.name, number);
    manifests.push({ key, body });
    return { key, offsets, shared };
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
