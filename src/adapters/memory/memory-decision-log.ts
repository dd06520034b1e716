import type { JobId } from '../../contracts/ids.ts';
import type { LogEntry } from '../../contracts/records.ts';
import { copyPlain } from '../../lib/copy-plain.ts';
import type { DecisionLog } from '../../ports/job-store.ts';

/** Decision logs in memory. */
export class MemoryDecisionLog implements DecisionLog {
  private readonly logs = new Map<JobId, Map<number, LogEntry>>();

  append(jobId: JobId, entry: LogEntry): Promise<'appended' | 'stale'> {
    const log = this.logs.get(jobId) ?? new Map<number, LogEntry>();
    this.logs.set(jobId, log);
    const there = log.get(entry.version);
    if (there === undefined) {
      log.set(entry.version, copyPlain(entry));
      return Promise.resolve('appended');
    }
    return Promise.resolve(isSame(there, entry) ? 'appended' : 'stale');
  }

  /** Drops the log of a job. */
  forget(jobId: JobId): void {
    this.logs.delete(jobId);
  }

  async *read(jobId: JobId): AsyncIterable<LogEntry> {
    const entries = [...(this.logs.get(jobId)?.values() ?? [])];
    await Promise.resolve();
    yield* entries.sort((a, b) => a.version - b.version);
  }
}

/** A writer that repeats an append whose answer was lost meets its own entry. */
const isSame = (a: LogEntry, b: LogEntry): boolean =>
  a.epoch === b.epoch && a.at === b.at && JSON.stringify(a.decisions) === JSON.stringify(b.decisions);
