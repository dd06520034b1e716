import { type EpochMs, elapsedMs } from '../../../contracts/units.ts';
import { type LocationFactor, locationFactors } from '../../estimate/location-factor.ts';
import type { StageView } from '../../model/job-view.ts';
import { workerOf } from '../../model/stage-worker.ts';
import type { PolicyView } from '../policy-set.ts';

type Factors = ReadonlyMap<string, LocationFactor>;

/** What a stage has told that ended so long ago tells nothing any more: a zone is slow for a while. */
const toldForMs = 15 * 60_000;

/** Whether a stage's zones say how fast these are: those of one that was placed by what it reads say more of links. */
const tells = (stage: StageView, now: EpochMs): boolean =>
  stage.state === 'done' &&
  stage.placement === undefined &&
  stage.doneAt !== undefined &&
  elapsedMs(stage.doneAt, now) <= toldForMs &&
  workerOf({ shape: stage.shape }).kind === 'fargate';

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

/**
 * The factors of zones by a stage's own tasks, and of zones in which none of them has run by those of the job's earlier
 * stages, the latest first: a zone that was slow a minute ago is not tried again by each stage anew, nor by one that has
 * kept out of it so far.
 *
 * Source: ours, for Mantri §5.5, which says nothing of where its factor is from.
 */
export function knownFactors(
  own: Factors,
  stage: StageView,
  { state, now, zones = [] }: Pick<PolicyView, 'state' | 'now' | 'zones'>,
): Factors {
  let factors = own;
  for (let place = stage.index - 1; place >= 0; place--) {
    if (zones.every((zone) => factors.has(zone))) return factors;
    const earlier = state.stages[place];
    if (earlier === undefined || !tells(earlier, now)) continue;
    const more = locationFactors(earlier.statistics.zones, []);
    // Where a stage has found no difference all are 1, which is no news of a zone.
    if ([...more.values()].some(({ factor }) => factor !== 1)) factors = withOthers(factors, more);
  }
  return factors;
}
