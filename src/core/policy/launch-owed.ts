import { stageAt } from '../model/job-state.ts';
import type { AttemptView, TaskView } from '../model/job-view.ts';
import { awaitsInputs } from '../model/lost-outputs.ts';
import type { RefusalReason } from '../model/decision.ts';
import type { LaunchRoom } from '../model/tick-config.ts';
import type { Account } from './account.ts';
import { affordsOwed, spendingFacts } from './budget.ts';
import { slotsElsewhere } from './elsewhere.ts';
import type { OwedLaunch } from './owed-launches.ts';
import { alone, joins, type OpenPack, openPack, type Packs } from './ride-together.ts';
import { idOf, launch, roomLeft, slotsFor, takeSlot } from './spend-slots.ts';

/**
 * Launches attempts that ride by themselves after all, each into a slot. One that its worker is about to take up, as
 * far as is known, holds that worker's slot already.
 */
export function launchRiders(account: Account, riders: readonly AttemptView[]): void {
  for (const { id, stage, task: index, reason, place } of riders) {
    const task = stageAt(account.state, stage).tasks[index];
    if (task === undefined || roomLeft(account) < 1) return;
    if (awaitsInputs(account.state, stageAt(account.state, stage))) continue;
    if (place !== 'carrier') {
      if (slotsFor(account, task) < 1) continue;
      takeSlot(account, task);
    }
    account.waiting -= 1;
    account.decisions.push({ kind: 'launch', attemptId: id, reason });
  }
}

/**
 * Launches what is owed, in order, into what is left, off the nodes to be avoided; short ones ride together as `packs`
 * says. The first that gets no slot is refused in the log. Where nothing runs and no other node is free, any will do:
 * a job must not wait for nodes that may never come.
 */
export function launchOwed(
  account: Account,
  owedUpTo: (limit: number, room: LaunchRoom | undefined) => readonly OwedLaunch[],
  declined: readonly string[] = [],
  packs: Packs = alone,
): void {
  const room = roomLeft(account);
  const isNoneElsewhere = account.state.live.size === 0 && slotsElsewhere(account, declined) < 1;
  const avoidNodes = isNoneElsewhere ? [] : declined;
  const elsewhere = slotsElsewhere(account, avoidNodes);
  const limit = Math.max(0, Math.min(account.free, room, elsewhere));
  const shared = account.terms.launchRoom;
  const each = 1 + packs.mostRiders;
  // One more than there is room for: it is told that it got none.
  const owed = owedUpTo(
    Math.min(limit * each, room) + 1,
    shared && {
      ...shared,
      launches: account.launchRoom * each + 1,
      ...(shared.refused && {
        refused: { ...shared.refused, launches: Math.max(0, account.refusedRoom) * each + 1 },
      }),
    },
  );
  const isShort = account.free <= Math.min(room, elsewhere);
  let granted = 0;
  let pack: OpenPack | undefined;
  let refused: { readonly task: TaskView; readonly reason: RefusalReason } | undefined;
  const { spending } = account.terms;
  for (const next of owed) {
    const { task, reason } = next;
    // What was launched before it in this tick counts, too.
    if (spending !== undefined && !affordsOwed(spending, task)) continue;
    const isFull = roomLeft(account) < 1;
    if (!isFull && joins(packs, pack, next)) {
      launch(account, { task, reason, behind: pack.head });
      continue;
    }
    if (granted < limit && !isFull && slotsFor(account, task) >= 1) {
      granted += 1;
      const place = account.terms.placeOf?.(task);
      pack = openPack(packs, next, launch(account, { task, reason, avoidNodes, ...place }));
    } else if (granted < limit) refused ??= { task, reason: isFull ? 'tick-full' : 'no-slot' };
    else refused ??= { task, reason: isShort ? 'no-slot' : limit === room ? 'tick-full' : 'slow-node' };
  }
  refuseOverBudget(account);
  if (refused === undefined) return;
  const taskId = idOf(account.state, refused.task);
  account.refusals.unshift({ kind: 'refuse', taskId, reason: refused.reason });
}

/** The first task that is owed an attempt for which the job has no dollars left. */
function refuseOverBudget({ state, terms: { spending }, refusals }: Account): void {
  const [task] = spending?.refused ?? [];
  if (task === undefined || spending === undefined) return;
  refusals.unshift({
    kind: 'refuse',
    taskId: idOf(state, task),
    reason: 'budget',
    facts: spendingFacts(spending, task),
  });
}
