import type { KeyValue, TaskInput } from './operator.ts';
import { RecordCursor } from './record-cursor.ts';

/**
 * The records of inputs that each come in order of key, merged: in order of key, equal keys in order of input. Batches are
 * good until the next one is asked for.
 */
export async function* recordsInKeyOrder(inputs: readonly TaskInput[]): AsyncGenerator<readonly KeyValue[]> {
  const [only] = inputs;
  if (only !== undefined && inputs.length === 1) {
    yield* only.records();
    return;
  }
  const cursors: RecordCursor[] = [];
  try {
    for (const input of inputs) cursors.push(await RecordCursor.open(input.records()));
    let batch: KeyValue[] = [];
    for (let least = leastOf(cursors); least?.current !== undefined; least = leastOf(cursors)) {
      batch.push(least.current);
      if (least.isAtEndOfBatch) {
        // The memory of its batch may be used again once it moves on.
        yield batch;
        batch = [];
      }
      const move = least.advance();
      if (move !== undefined) await move;
    }
  } finally {
    for (const cursor of cursors) await cursor.close();
  }
}

/** The first of the cursors at the least key, of those that are not at their ends. They are few, as a stage's inputs are. */
function leastOf(cursors: readonly RecordCursor[]): RecordCursor | undefined {
  let least: RecordCursor | undefined;
  for (const cursor of cursors) {
    if (cursor.current === undefined) continue;
    if (least?.current === undefined || cursor.current.key.compare(least.current.key) < 0) least = cursor;
  }
  return least;
}
