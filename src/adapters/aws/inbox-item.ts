import { type AttemptId, attemptIdPattern, type JobId, taskOf } from '../../contracts/ids.ts';
import { limits } from '../../contracts/limits.ts';
import { type Note, noteKinds, type TaskSpace } from '../../ports/attempt-store.ts';
import type { Item, ItemKey } from './dynamo-table.ts';
import { shardOf } from './attempt-item.ts';

/** The set of notes in an inbox's item. */
export const NOTES = 'notes';
/** Keys of tasks that share one inbox: few enough that a burst of their ends fits its key's rate. */
const SHARDS_PER_INBOX = 6;

const inboxes = ({ shards }: TaskSpace): number =>
  Math.min(limits.inboxes, Math.ceil(shards / SHARDS_PER_INBOX));

const inboxKey = (jobId: JobId, place: number): ItemKey => ({ pk: `J#${jobId}#inbox-${place}`, sk: 'inbox' });

/** The inboxes of a job, each under a key of its own. */
export const inboxKeys = (space: TaskSpace): readonly ItemKey[] =>
  Array.from({ length: inboxes(space) }, (_, place) => inboxKey(space.jobId, place));

/** The inbox of an attempt: that of its task. */
export const inboxOf = (space: TaskSpace, id: AttemptId): ItemKey =>
  inboxKey(space.jobId, shardOf(space, taskOf(id)) % inboxes(space));

/** A note as the set holds it. */
export const encodeNote = ({ attemptId, kind }: Note): string => `${kind} ${attemptId}`;

function decodeNote(text: unknown): Note | undefined {
  if (typeof text !== 'string') return undefined;
  const at = text.indexOf(' ');
  const kind = noteKinds.find((each) => each === text.slice(0, at));
  const id = text.slice(at + 1);
  return kind === undefined || !attemptIdPattern.test(id) ? undefined : { kind, attemptId: id as AttemptId };
}

/** The notes of an inbox, and whether there is anything else in it. */
export function decodeInbox(item: Item): { readonly notes: readonly Note[]; readonly isSpoilt: boolean } {
  const set = item[NOTES];
  if (set === undefined) return { notes: [], isSpoilt: false };
  if (!(set instanceof Set)) return { notes: [], isSpoilt: true };
  const notes = [...set].flatMap((text) => decodeNote(text) ?? []);
  return { notes, isSpoilt: notes.length < set.size };
}
