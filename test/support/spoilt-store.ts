import type { AttemptId, TaskId } from '../../src/contracts/ids.ts';
import type { UnreadableRecord } from '../../src/contracts/records.ts';
import type { AttemptStore, TaskRecords } from '../../src/ports/attempt-store.ts';

/** Which records of a store cannot be read. */
export interface Spoilt {
  readonly attempt?: (id: AttemptId) => boolean;
  readonly result?: (id: TaskId) => boolean;
}

/** A store some of whose records cannot be read, as one over DynamoDB answers where they hold garbage. */
export function spoiltStore(store: AttemptStore, spoilt: Spoilt): AttemptStore {
  const split = (changes: TaskRecords): TaskRecords => {
    const isSpoilt = { attempt: spoilt.attempt ?? (() => false), result: spoilt.result ?? (() => false) };
    const attempts = changes.attempts
      .filter(({ attemptId }) => isSpoilt.attempt(attemptId))
      .map(({ attemptId, state, order, upload }): UnreadableRecord => ({
        key: `J#job#0/A#${attemptId}`,
        kind: 'attempt',
        attemptId,
        why: 'progress.bytesRead must be a number',
        mayWork: state === 'running' || (state === 'launched' && order === 'continue'),
        ...(upload?.uploadId === undefined ? {} : { uploadId: upload.uploadId }),
      }));
    const results = changes.results
      .filter(({ taskId }) => isSpoilt.result(taskId))
      .map(({ taskId }): UnreadableRecord => ({
        key: `J#job#0/T#${taskId}`,
        kind: 'result',
        taskId,
        why: 'counters must be finite numbers by name',
        mayWork: false,
      }));
    return {
      attempts: changes.attempts.filter(({ attemptId }) => !isSpoilt.attempt(attemptId)),
      results: changes.results.filter(({ taskId }) => !isSpoilt.result(taskId)),
      replicas: changes.replicas,
      unreadable: [...attempts, ...results],
    };
  };
  return {
    create: (...args) => store.create(...args),
    orderCancel: (...args) => store.orderCancel(...args),
    markLost: (...args) => store.markLost(...args),
    recordDeath: (...args) => store.recordDeath(...args),
    claim: (...args) => store.claim(...args),
    report: (...args) => store.report(...args),
    noteUpload: (...args) => store.noteUpload(...args),
    commit: (...args) => store.commit(...args),
    noteOutputLost: (...args) => store.noteOutputLost(...args),
    end: (...args) => store.end(...args),
    orders: (...args) => store.orders(...args),
    tell: (...args) => store.tell(...args),
    told: (...args) => store.told(...args),
    clear: (...args) => store.clear(...args),
    read: async (...args) => split(await store.read(...args)),
    all: async (...args) => split(await store.all(...args)),
  };
}
