import { attemptParts, type JobId } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import { elapsedMs, type EpochMs } from '../contracts/units.ts';
import { taskOfAttempt } from '../core/model/job-state.ts';
import type { JobState } from '../core/model/job-view.ts';
import { applyObservation, type Observation } from '../core/model/observation.ts';
import { encodeLine, type JournalLine, lean } from '../core/replay/journal-lines.ts';
import type { JournalStore } from '../ports/journal-store.ts';
import type { Log } from '../ports/log.ts';

/** A scheduler that is killed loses what it has learned since about so long ago, and no more than a piece. */
const keepEveryMs = 60_000;

/**
 * What one scheduler learns and decides, written down beside its work: lines are gathered in memory and stored in pieces,
 * one at a time and never waited for, the last as the scheduler leaves. Bounded in memory and in length. What cannot be
 * stored ends the journal, and is no failure of the job.
 */
export class Journal {
  private readonly store: JournalStore;
  private readonly log: Log;
  private readonly jobId: JobId;
  private readonly epoch: number;
  private waiting = '';
  private number = 0;
  private keptAt: EpochMs;
  private now: EpochMs;
  private writing: Promise<void> | undefined;
  private isOver = false;
  private lastBudget = '';

  constructor(
    { store, log }: { readonly store: JournalStore; readonly log: Log },
    { jobId, epoch, now }: { readonly jobId: JobId; readonly epoch: number; readonly now: EpochMs },
  ) {
    this.store = store;
    this.log = log;
    this.jobId = jobId;
    this.epoch = epoch;
    this.keptAt = now;
    this.now = now;
  }

  add(line: JournalLine): void {
    if (this.isOver) return;
    const text = encodeLine(this.withoutKnown(line));
    if (
      this.waiting.length + text.length > limits.journalWaitingChars ||
      this.number >= limits.journalPieces
    ) {
      this.waiting += encodeLine({ kind: 'end', why: 'too-long' });
      this.isOver = true;
      this.log.warn('journal-too-long', { jobId: this.jobId, pieces: this.number });
      return;
    }
    this.waiting += text;
    if (this.waiting.length >= limits.journalPieceChars) this.write();
  }

  /** Stores what there is where that has waited for long. */
  keep(now: EpochMs): void {
    this.now = now;
    if (this.waiting === '' || elapsedMs(this.keptAt, now) < keepEveryMs) return;
    this.keptAt = now;
    this.write();
  }

  /** Stores the rest. Never throws. */
  async close(): Promise<void> {
    this.add({ kind: 'end', why: 'left' });
    this.isOver = true;
    this.write();
    await this.writing;
  }

  /** Most ticks may use what the one before them might. */
  private withoutKnown(line: JournalLine): JournalLine {
    if (line.kind !== 'tick') return line;
    const { budget, ...others } = line;
    const text = JSON.stringify(budget);
    if (text === this.lastBudget) return others;
    this.lastBudget = text;
    return line;
  }

  private write(): void {
    this.writing ??= this.writeAll().finally(() => {
      this.writing = undefined;
    });
  }

  private async writeAll(): Promise<void> {
    try {
      while (this.waiting !== '') {
        const text = this.waiting.slice(0, limits.journalPieceChars);
        this.waiting = this.waiting.slice(text.length);
        await this.store.append(this.jobId, { epoch: this.epoch, number: this.number, text }, this.now);
        this.number += 1;
      }
    } catch (cause) {
      this.isOver = true;
      this.waiting = '';
      this.log.warn('journal-not-kept', { jobId: this.jobId, cause: String(cause) });
    }
  }
}

/** A job whose state observations change, and who writes them down; absent: nobody does. */
export interface Observed {
  readonly state: JobState;
  readonly journal?: Journal | undefined;
}

/** Takes an observation over into the state of a job, and into its journal: the one way in which a job learns. */
export function observe({ state, journal }: Observed, seen: Observation): void {
  const isKnown =
    seen.kind === 'attempt' && (state.attempts.get(seen.record.attemptId)?.reports.length ?? 0) > 0;
  applyObservation(state, seen);
  if (journal === undefined) return;
  // One with other bytes than the result is no replica, which the journal could not tell: it keeps no bytes.
  if (seen.kind === 'replica' && !isReplica(state, seen)) return;
  journal.add(lean(seen, isKnown));
}

function isReplica(
  state: JobState,
  { result: { attemptId } }: Extract<Observation, { kind: 'replica' }>,
): boolean {
  return taskOfAttempt(state, attemptId).replicas.includes(attemptParts(attemptId).attempt);
}
