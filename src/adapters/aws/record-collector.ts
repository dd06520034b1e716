import type { AttemptId, TaskId } from '../../contracts/ids.ts';
import { taskOf } from '../../contracts/ids.ts';
import {
  type AttemptRecord,
  endedByResult,
  type TaskResult,
  type UnreadableRecord,
} from '../../contracts/records.ts';
import type { TaskRecords } from '../../ports/attempt-store.ts';
import { decodeShardItem } from './attempt-item.ts';
import type { Item } from './dynamo-table.ts';

/** Gathers what items say of attempts and tasks; of an item that comes twice the later reading counts. */
export class RecordCollector {
  private readonly attempts = new Map<AttemptId, AttemptRecord>();
  private readonly results = new Map<TaskId, TaskResult>();
  private readonly replicas = new Map<AttemptId, TaskResult>();
  private readonly unreadable = new Map<string, UnreadableRecord>();

  take(item: Item): void {
    const decoded = decodeShardItem(item);
    if (decoded.kind === 'unreadable') this.unreadable.set(decoded.unreadable.key, decoded.unreadable);
    else if (decoded.kind === 'attempt') this.attempts.set(decoded.attempt.attemptId, decoded.attempt);
    else if (decoded.kind === 'result') this.results.set(decoded.result.taskId, decoded.result);
    else this.replicas.set(decoded.result.attemptId, decoded.result);
  }

  records(): TaskRecords {
    const attempts = [...this.attempts.values()];
    return {
      attempts: attempts.map((each) => endedByResult(each, this.results.get(taskOf(each.attemptId)))),
      results: [...this.results.values()],
      replicas: [...this.replicas.values()],
      ...(this.unreadable.size === 0 ? {} : { unreadable: [...this.unreadable.values()] }),
    };
  }
}
