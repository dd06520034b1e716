import { elapsedMs, type EpochMs } from '../contracts/units.ts';
import { backupsOf } from '../core/capacity/admit-backups.ts';
import { guaranteeOf } from '../core/capacity/guarantees.ts';
import { type Holding, occupiedBy } from '../core/capacity/ledger.ts';
import { isShort } from '../core/capacity/share-slots.ts';
import type { GrantContext, News } from './ledger-words.ts';

/** A job that has what it wants looks so often whether some was taken from it. */
export const lookEveryMs = 5_000;
/** What is given back while nobody needs it is told at once where it is so much of the grant, and else after a while. */
const worthTelling = 0.1;

/** What a job's word tells that was not known; undefined: nothing that is worth a write. */
export function newsOf(
  known: { readonly holding: Holding; readonly toldAt: EpochMs } | undefined,
  after: Holding,
  context: GrantContext,
  isAnyShort: boolean,
): News | undefined {
  if (known === undefined) return 'wants';
  const { holding: before, toldAt } = known;
  const silentMs = elapsedMs(toldAt, context.now);
  // Also where its clock was set back: a beat too many does no harm.
  if (silentMs > context.length / 2 || toldAt > context.now || before.epoch !== after.epoch) return 'beat';
  const given = occupiedBy(before) - occupiedBy(after);
  if (given > 0 || after.slots < before.slots) {
    const isWorth = isAnyShort || context.live === undefined || given >= worthTelling * before.held;
    if (isWorth || silentMs >= lookEveryMs) return 'gives';
  }
  if (guaranteeOf(before) > guaranteeOf(after)) return 'gives';
  if (backupsOf(before) > backupsOf(after) && silentMs >= lookEveryMs) return 'spares';
  // One that is short is known to want more; how much more matters once it has what it has asked for.
  const isNewWish =
    context.live === undefined
      ? after.wanted !== before.wanted
      : after.wanted > before.wanted && !isShort(before);
  return isNewWish || occupiedBy(after) > occupiedBy(before) ? 'wants' : undefined;
}
