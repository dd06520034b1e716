import type { EpochMs } from '../../contracts/units.ts';
import type { CloneHolding } from '../../core/model/clone-holding.ts';
import type { Change } from './dynamo-table.ts';

/** A job's grant as the ledger's item holds it. */
export interface Grant extends CloneHolding {
  readonly slots: number;
  readonly expiresAt: EpochMs;
  /** Sum of `clones`; both absent where there are none. */
  readonly cloneSlots?: number | undefined;
}

/** Up to where clones may be added. */
export interface CloneRoom {
  readonly budgetSlots: number;
  readonly ceilingSlots: number;
}

/** A job's grant replaced by another, grants that ran out dropped, and clones of others taken away. */
export interface Transfer {
  readonly jobId: string;
  readonly held: Grant | undefined;
  readonly grant: Grant | undefined;
  readonly expired: readonly (readonly [string, Grant])[];
  /** Grants of others whose clones make room: what they were and what they become, with the same slots. */
  readonly taken?: readonly (readonly [string, { readonly before: Grant; readonly after: Grant }])[];
  readonly totalSlots: number;
  /** For a write that admits clones: the ceilings of all slots and of those of clones. */
  readonly room?: CloneRoom;
}

/** That a grant is what was read. Its clones count too, lest a renewal forget those that were just admitted. */
function isStill(name: string, { cloneSlots }: Grant): string {
  const clones =
    cloneSlots === undefined
      ? `attribute_not_exists(#grants.#${name}.#cloneSlots)`
      : `#grants.#${name}.#cloneSlots = :${name}Clones`;
  return `#grants.#${name}.#slots = :${name}Slots AND #grants.#${name}.#expiresAt = :${name}Until AND ${clones}`;
}

const valuesOfGrant = (name: string, { slots, expiresAt, cloneSlots }: Grant): Record<string, unknown> => ({
  [`${name}Slots`]: slots,
  [`${name}Until`]: expiresAt,
  ...(cloneSlots === undefined ? {} : { [`${name}Clones`]: cloneSlots }),
});

/** A map that the SDK's marshaller takes for one whatever its keys are: an object with a `constructor` it refuses. */
const asMap = <T>(byPhase: Readonly<Record<string, T>> | undefined): ReadonlyMap<string, T> | undefined =>
  byPhase === undefined ? undefined : new Map(Object.entries(byPhase));

/** A grant as it is written. */
export const storedGrant = ({ clones, addedSlots, preempted, ...grant }: Grant): object => ({
  ...grant,
  clones: asMap(clones),
  addedSlots: asMap(addedSlots),
  preempted: asMap(preempted),
});

/** The parts of a write that replace grants of others. Conditions, names and values go into what is given. */
function replaceTaken(
  taken: Transfer['taken'] = [],
  into: { conditions: string[]; names: Record<string, string>; values: Record<string, unknown> },
): { readonly clauses: string; readonly clones: number } {
  let clauses = '';
  let clones = 0;
  for (const [index, [id, { before, after }]] of taken.entries()) {
    const name = `taken${index}`;
    into.names[name] = id;
    Object.assign(into.values, valuesOfGrant(name, before), { [name]: storedGrant(after) });
    into.conditions.push(isStill(name, before));
    clauses += `, #grants.#${name} = :${name}`;
    clones += (after.cloneSlots ?? 0) - (before.cloneSlots ?? 0);
  }
  return { clauses, clones };
}

/** What must hold of the sums for a write that adds so much. Values go into `values`. */
function roomConditions(
  { totalSlots, room, grant, held }: Transfer,
  added: { slots: number; clones: number },
  values: Record<string, unknown>,
): string[] {
  const conditions: string[] = [];
  // A job that asks for more must find room; one that gives or keeps must not be refused, even when overspent.
  if (room !== undefined || (grant?.slots ?? 0) > (held?.slots ?? 0)) {
    conditions.push('#usedSlots <= :room');
    values['room'] = Math.min(totalSlots, room?.ceilingSlots ?? totalSlots) - added.slots;
  }
  if (room !== undefined) {
    conditions.push('(attribute_not_exists(#cloneSlots) OR #cloneSlots <= :cloneRoom)');
    values['cloneRoom'] = room.budgetSlots - added.clones;
  }
  return conditions;
}

/** The single write of a transfer, which keeps the sums. Refused where anything it depends on has changed. */
export function ledgerChange(transfer: Transfer): Change {
  const { jobId, held, grant, expired, totalSlots } = transfer;
  const conditions = [held === undefined ? 'attribute_not_exists(#grants.#job)' : isStill('job', held)];
  const names: Record<string, string> = { job: jobId };
  const values: Record<string, unknown> = held === undefined ? {} : valuesOfGrant('job', held);
  const removed = grant === undefined && held !== undefined ? ['#grants.#job'] : [];
  const added = {
    slots: (grant?.slots ?? 0) - (held?.slots ?? 0),
    clones: (grant?.cloneSlots ?? 0) - (held?.cloneSlots ?? 0),
  };
  for (const [index, [id, old]] of expired.entries()) {
    const name = `gone${index}`;
    names[name] = id;
    Object.assign(values, valuesOfGrant(name, old));
    conditions.push(isStill(name, old));
    removed.push(`#grants.#${name}`);
    added.slots -= old.slots;
    added.clones -= old.cloneSlots ?? 0;
  }
  const taken = replaceTaken(transfer.taken, { conditions, names, values });
  added.clones += taken.clones;
  conditions.push(...roomConditions(transfer, added, values));
  return {
    clauses: [
      'SET #totalSlots = :total, #usedSlots = #usedSlots + :added',
      added.clones === 0 ? '' : ', #cloneSlots = if_not_exists(#cloneSlots, :none) + :addedClones',
      grant === undefined ? '' : ', #grants.#job = :grant',
      taken.clauses,
      removed.length === 0 ? '' : ` REMOVE ${removed.join(', ')}`,
    ].join(''),
    when: conditions.join(' AND '),
    names,
    values: {
      ...values,
      total: totalSlots,
      added: added.slots,
      ...(added.clones === 0 ? {} : { none: 0, addedClones: added.clones }),
      ...(grant === undefined ? {} : { grant: storedGrant(grant) }),
    },
  };
}
