import type { EpochMs } from '../../../contracts/units.ts';
import { type LocationFactor, locationFactors } from '../../estimate/location-factor.ts';
import type { StageView } from '../../model/job-view.ts';
import { workerOf } from '../../model/stage-worker.ts';
import { stillTells, type ZoneSign } from '../../model/zone-book.ts';
import type { PolicyView } from '../policy-set.ts';

/** How slow a zone is, as far as a stage knows, and whether it knows that from other jobs. */
export interface KnownFactor extends LocationFactor {
  readonly isOfOthers?: true;
}

type Factors = ReadonlyMap<string, KnownFactor>;

/**
 * When a stage was done whose tasks still tell how fast zones are; undefined of any other: those of one that was placed by
 * what it reads say more of links.
 */
export function toldOfZonesAt(
  { state, placement, doneAt, shape }: StageView,
  now: EpochMs,
): EpochMs | undefined {
  if (state !== 'done' || placement !== undefined || doneAt === undefined) return undefined;
  return stillTells(doneAt, now) && workerOf({ shape }).kind === 'fargate' ? doneAt : undefined;
}

/** The factors of zones by the tasks of a stage; undefined where they do not tell, or have found no difference. */
function foundBy(stage: StageView, now: EpochMs): Factors | undefined {
  if (toldOfZonesAt(stage, now) === undefined) return undefined;
  const factors = locationFactors(stage.statistics.zones, []);
  return [...factors.values()].some(({ factor }) => factor !== 1) ? factors : undefined;
}

/** What `more` knows of other zones than `known`, by the factors that both have of the same ones: each is 1 on the mean of its own. */
function withOthers(known: Factors, more: Factors): Factors {
  let [ofKnown, ofMore] = [0, 0];
  for (const [zone, { factor, samples }] of more) {
    ofKnown += samples * (known.get(zone)?.factor ?? 0);
    ofMore += known.has(zone) ? samples * factor : 0;
  }
  const scale = ofMore > 0 ? ofKnown / ofMore : 1;
  const others = [...more].flatMap(([zone, each]) =>
    known.has(zone) ? [] : [[zone, { ...each, factor: scale * each.factor }] as const],
  );
  return new Map([...known, ...others]);
}

/** As `foundBy` has it of a stage of this job. */
const toldBy = ({ zones }: ZoneSign): Factors =>
  new Map(zones.map(({ zone, ...known }) => [zone, { ...known, isOfOthers: true }]));

/**
 * The factors of zones by a stage's own tasks, and of zones in which none of them has run by those of the job's earlier
 * stages, the latest first, and then by what other jobs have told: a zone that was slow a minute ago is not tried again by
 * each stage anew, nor by each job, nor by one that has kept out of it so far.
 *
 * Source: ours, for Mantri §5.5, which says nothing of where its factor is from.
 */
export function knownFactors(
  own: ReadonlyMap<string, LocationFactor>,
  stage: StageView,
  { state, now, zones = [], zonesTold = [] }: Pick<PolicyView, 'state' | 'now' | 'zones' | 'zonesTold'>,
): Factors {
  let factors: Factors = own;
  const isAllKnown = (): boolean => zones.every((zone) => factors.has(zone));
  for (let place = stage.index - 1; place >= 0 && !isAllKnown(); place--) {
    const earlier = state.stages[place];
    const found = earlier === undefined ? undefined : foundBy(earlier, now);
    if (found !== undefined) factors = withOthers(factors, found);
  }
  for (const sign of zonesTold) {
    if (isAllKnown()) break;
    if (stillTells(sign.at, now)) factors = withOthers(factors, toldBy(sign));
  }
  return factors;
}
