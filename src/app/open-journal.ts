import type { JobId } from '../contracts/ids.ts';
import type { EpochMs } from '../contracts/units.ts';
import type { TickDecision } from '../core/decide-tick.ts';
import type { LaunchOrder, StageShape } from '../core/model/job-view.ts';
import type { TickBudget, TickConfig } from '../core/model/tick-config.ts';
import { encodeBudget, journalFormat } from '../core/replay/journal-lines.ts';
import type { Log } from '../ports/log.ts';
import type { JournalStore } from '../ports/journal-store.ts';
import { opened } from './commit-decisions.ts';
import { Journal } from './journal.ts';
import type { Session } from './scheduler-session.ts';

/** What a scheduler knows of a job as it enters. */
interface Entered {
  readonly jobId: JobId;
  readonly epoch: number;
  readonly at: EpochMs;
  readonly shapes: readonly StageShape[];
  readonly launchOrder: LaunchOrder;
  readonly tickConfig: TickConfig;
}

/** Begins the journal of a scheduler; undefined on hosts that keep none. */
export function openJournal(
  { journals: store, log }: { readonly journals?: JournalStore; readonly log: Log },
  { tickConfig, ...job }: Entered,
): Journal | undefined {
  if (store === undefined) return undefined;
  const { jobId, epoch, at } = job;
  const journal = new Journal({ store, log }, { jobId, epoch, now: at });
  const { policy = 'none', ...times } = tickConfig;
  const name = typeof policy === 'string' ? policy : policy.name;
  journal.add({ kind: 'session', format: journalFormat, ...job, config: { ...times, policy: name } });
  return journal;
}

/** Writes down a tick that was committed and taken over: what it might use, and what it has decided. */
export function tellTick(session: Session, now: EpochMs, budget: TickBudget, decided: TickDecision): void {
  const { journal, state, version } = session;
  if (journal === undefined) return;
  const { decisions, refusals, outcome } = decided;
  journal.add({
    kind: 'tick',
    at: now,
    budget: encodeBudget(budget),
    ...(decisions.length === 0
      ? {}
      : {
          version,
          decided: JSON.stringify([...decisions, ...refusals]),
          ...opened(state, decisions),
        }),
    ...(outcome.kind === 'continue' ? {} : { outcome }),
  });
  journal.keep(now);
}
