import { bucketOfZone, isDirectoryBucket } from '../contracts/directory-buckets.ts';
import type { AttemptId } from '../contracts/ids.ts';
import type { Plan } from '../contracts/plan.ts';
import { type StorageTier, tierOfBucket } from '../contracts/storage-tiers.ts';
import type { JobState } from '../core/model/job-view.ts';
import { taskWithOutput, zoneOfOutput } from '../core/model/lost-outputs.ts';
import {
  type LossCounts,
  type LossPrior,
  type LossRates,
  lossRates,
} from '../core/policy/mantri/loss-rate.ts';

/** The directory buckets that a job's outputs may be in, one for each zone; empty where they are in none. */
export const zonalBucketsOf = (plan: Pick<Plan, 'stages'> | undefined): readonly string[] =>
  plan?.stages[0]?.description.zonalBuckets ?? [];

/** What a job's storage is told by. */
export interface PlacesDeps {
  readonly dataBucket: string;
  readonly config: { readonly storage?: StorageTier };
}

/** Where a job's outputs lie, as far as they are lost together: in a bucket, or with the worker that made them. */
export class OutputPlaces {
  /** The tier that the job's outputs are meant for. Some may be in the data bucket all the same. */
  readonly tier: StorageTier;
  /** Where copies lie; empty: wherever, of which nothing is known. */
  readonly copies: string;
  private readonly dataBucket: string;
  private readonly zonalBuckets: readonly string[];
  private readonly state: JobState;

  constructor(
    { dataBucket, config }: PlacesDeps,
    { plan, state }: { readonly plan: Pick<Plan, 'stages'>; readonly state: JobState },
  ) {
    this.zonalBuckets = zonalBucketsOf(plan);
    this.tier = this.zonalBuckets.length > 0 ? 'zonal' : (config.storage ?? tierOfBucket(dataBucket));
    this.copies = this.zonalBuckets.length > 0 ? dataBucket : '';
    this.dataBucket = dataBucket;
    this.state = state;
  }

  /** Where the output of an attempt lies, or lay before it was lost; of a copy, somewhere. */
  of(id: AttemptId | undefined): string {
    const { dataBucket, zonalBuckets, state } = this;
    if (id === undefined) return dataBucket;
    if (this.tier === 'worker-local') return state.attempts.get(id)?.node ?? dataBucket;
    if (zonalBuckets.length === 0) return dataBucket;
    // Of what is not read any more its worker tells, which is as good but where that could not write to its zone.
    const zone =
      taskWithOutput(state, id) === undefined ? state.attempts.get(id)?.zone : zoneOfOutput(state, id);
    return bucketOfZone(zonalBuckets, zone) ?? dataBucket;
  }

  /**
   * r of each place, by what was seen there and, instead of what is taken for granted of the job's tier, `prior`. What a
   * zonal job has in the data bucket is on the tier of that.
   */
  rates(
    seen: ReadonlyMap<string, LossCounts>,
    prior: Pick<LossPrior, 'probability' | 'outputs'> | undefined,
  ): LossRates {
    const { dataBucket, zonalBuckets, tier } = this;
    const isZonal = zonalBuckets.length > 0;
    const ofTier = [...seen].filter(([place]) =>
      isZonal ? zonalBuckets.includes(place) : !isDirectoryBucket(place),
    );
    const rates = lossRates(tier, new Map(ofTier), prior);
    if (!isZonal) return rates;
    const elsewhere = lossRates(tierOfBucket(dataBucket), new Map());
    return (place) => (place === dataBucket ? elsewhere : rates)(place);
  }
}
