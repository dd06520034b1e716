import type { z } from 'zod';
import { BrokenInvariantError, invariant } from '../contracts/errors.ts';
import { attemptIdOf } from '../contracts/ids.ts';
import { bucketOfZone } from '../contracts/directory-buckets.ts';
import { attemptDataKey, type ObjectRef } from '../contracts/keys.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import {
  sourceManifestLineSchema,
  stageDescriptionSchema,
  stageManifestLineSchema,
} from '../contracts/plan.ts';
import type { PlannedInput, SourceSegment, StageDescription } from '../contracts/plan.ts';
import { bucketOfWorker, type OutputPlace } from '../contracts/worker-places.ts';
import { ownValue } from '../lib/own.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { InputPlace } from './input-cut.ts';
import type { UpstreamSegment } from './upstream-segment.ts';

/** Descriptions that a warm environment keeps: attempts of a stage come one after the other. */
const keptDescriptions = 16;
const descriptions = new WeakMap<ObjectStore, Map<string, StageDescription>>();

/** One input of the task: how it is read, and its pieces in order. */
export type AttemptInput =
  | {
      readonly planned: Extract<PlannedInput, { kind: 'source' }>;
      readonly segments: readonly SourceSegment[];
    }
  | {
      readonly planned: Extract<PlannedInput, { kind: 'stage' }>;
      readonly segments: readonly UpstreamSegment[];
    };

/** What an attempt needs to know before it begins. */
export interface AttemptPlan {
  readonly description: StageDescription;
  readonly inputs: readonly AttemptInput[];
  /** Bytes of all pieces together, but for those of which only the begin is read. */
  readonly bytesTotal: number;
  /** Where each input begins that another attempt has read in part, by its place; absent: all at their begins. */
  readonly begins?: ReadonlyMap<number, InputPlace>;
}

/**
 * Reads the stage's description and the task's line of each input manifest, and puts the copies that the launch names
 * in the places of winners. Throws `BrokenInvariantError` on junk, and where a copy is of a stage that the task does
 * not read. Ends early where the signal fires.
 */
export async function loadAttemptPlan(
  objects: ObjectStore,
  dataBucket: string,
  payload: AttemptPayload,
  signal?: AbortSignal,
): Promise<AttemptPlan> {
  const description = await loadDescription(objects, { bucket: dataBucket, key: payload.stageKey }, signal);
  invariant(payload.inputs.length === description.inputs.length, 'a manifest for each input', {
    inputs: description.inputs.length,
    manifests: payload.inputs.length,
  });
  for (const stage of Object.keys(payload.copies ?? {})) {
    const isRead = description.inputs.some((planned) => planned.kind === 'stage' && planned.stage === stage);
    invariant(isRead, 'a copy is of a stage that the task reads', { stage });
  }
  const inputs = await Promise.all(
    description.inputs.map(async (planned, index) => {
      const range = payload.inputs[index];
      invariant(range !== undefined, 'a manifest for each input');
      const bytes =
        range.start >= range.end
          ? undefined
          : await objects.readAll(
              { bucket: dataBucket, key: range.key },
              { start: range.start, end: range.end },
              signal,
            );
      const line = bytes === undefined ? { segments: [] } : parseJson(bytes, range.key);
      return inputOf(description, planned, { line, key: range.key }, payload.copies);
    }),
  );
  return { description, inputs, bytesTotal: inputs.reduce((sum, input) => sum + bytesOf(input), 0) };
}

async function loadDescription(
  objects: ObjectStore,
  ref: ObjectRef,
  signal: AbortSignal | undefined,
): Promise<StageDescription> {
  const { key } = ref;
  const kept = descriptions.get(objects) ?? new Map<string, StageDescription>();
  descriptions.set(objects, kept);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const read = parseJson(await objects.readAll(ref, undefined, signal), key);
  const description = parseAs(stageDescriptionSchema, read, { key, what: 'the description of a stage' });
  const [oldest] = kept.keys();
  if (kept.size >= keptDescriptions && oldest !== undefined) kept.delete(oldest);
  kept.set(key, description);
  return description;
}

function parseJson(bytes: Uint8Array, key: string): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'));
  } catch (cause) {
    throw new BrokenInvariantError(`${key} is not JSON`, {}, { cause });
  }
}

/** What an object says, if it is what it should be; the failure names the object, for whoever has to find it. */
function parseAs<Schema extends z.ZodType>(
  schema: Schema,
  read: unknown,
  { key, what }: { readonly key: string; readonly what: string },
): z.output<Schema> {
  const parsed = schema.safeParse(read);
  if (parsed.success) return parsed.data;
  const path = parsed.error.issues[0]?.path.map(String).join('.') ?? '';
  const where = path === '' ? '' : `, ${path} being wrong`;
  throw new BrokenInvariantError(`${key} is not ${what}${where}`, { key }, { cause: parsed.error });
}

function inputOf(
  description: StageDescription,
  planned: PlannedInput,
  { line, key }: { readonly line: unknown; readonly key: string },
  copies: AttemptPayload['copies'],
): AttemptInput {
  const place = { key, what: 'a list of what tasks read' };
  if (planned.kind === 'source')
    return { planned, segments: parseAs(sourceManifestLineSchema, line, place).segments };
  const { segments } = parseAs(stageManifestLineSchema, line, place);
  const named = ownValue(copies, planned.stage);
  return {
    planned,
    segments: segments.map(({ task, offset, length, crc, head, ...winner }) => {
      // A replica has the very bytes of the winner's output: only the object is another.
      const copy = ownValue(named, String(task));
      const held: OutputPlace & { readonly attempt: number } =
        copy === undefined ? winner : typeof copy === 'number' ? { attempt: copy } : copy;
      const producer = attemptIdOf(planned.stage, task, held.attempt);
      const bucket = bucketOf(description, held);
      const ref = { bucket, key: attemptDataKey(description.jobId, producer) };
      return { ref, offset, length, crc, producer, ...(head === undefined ? {} : { isHead: head }) };
    }),
  };
}

function bucketOf(
  { dataBucket, zonalBuckets = [] }: StageDescription,
  { zone, worker }: OutputPlace,
): string {
  if (worker !== undefined) return bucketOfWorker(worker);
  if (zone === undefined) return dataBucket;
  const bucket = bucketOfZone(zonalBuckets, zone);
  invariant(bucket !== undefined, 'an output is in a zone that the plan does not know', { zone });
  return bucket;
}

function bytesOf(input: AttemptInput): number {
  if (input.planned.kind === 'stage') {
    return input.segments.reduce(
      (sum, segment) => sum + ('length' in segment && segment.isHead !== true ? segment.length : 0),
      0,
    );
  }
  return input.segments.reduce(
    (sum, segment) => sum + ('end' in segment ? segment.end - segment.start : 0),
    0,
  );
}

/**
 * The plan of what is left, from these places on: see `InputPlace`. Undefined where they are none of the plan's, as where
 * somebody else wrote them.
 */
export function restOfPlan(
  plan: AttemptPlan,
  places: readonly ({ readonly input: number } & InputPlace)[],
): AttemptPlan | undefined {
  const inputs = [...plan.inputs];
  for (const { input: index, segment, offset } of places) {
    const input = inputs[index];
    if (input === undefined || !isOfSources(input) || segment > input.segments.length) return undefined;
    const [first, ...others] = input.segments.slice(segment);
    if (offset === undefined) inputs[index] = { ...input, segments: input.segments.slice(segment) };
    else if (first === undefined || offset <= first.start || offset >= first.end) return undefined;
    else inputs[index] = { ...input, segments: [{ ...first, start: offset }, ...others] };
  }
  const begins = new Map(places.map(({ input, ...place }) => [input, place]));
  return { ...plan, inputs, begins, bytesTotal: inputs.reduce((sum, input) => sum + bytesOf(input), 0) };
}

/** A place in what is left of an input, as one in all of it. */
export function placeInAll({ begins }: AttemptPlan, input: number, place: InputPlace): InputPlace {
  const begin = begins?.get(input);
  if (begin === undefined) return place;
  // Where nothing of the rest was read, the rest is the same.
  return place.segment === 0 && place.offset === undefined
    ? begin
    : { ...place, segment: begin.segment + place.segment };
}

/** Whether an input is of source objects, and not of another stage. */
export const isOfSources = (
  input: AttemptInput,
): input is Extract<AttemptInput, { planned: { kind: 'source' } }> => input.planned.kind === 'source';

/** All pieces of other stages' outputs that an attempt reads. */
export const upstreamOf = (plan: AttemptPlan | undefined): readonly UpstreamSegment[] =>
  (plan?.inputs ?? []).flatMap((input) =>
    input.segments.flatMap((segment) => ('producer' in segment ? [segment] : [])),
  );
