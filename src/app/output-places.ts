import { bucketOfZone, isDirectoryBucket } from '../contracts/directory-buckets.ts';
import type { AttemptId } from '../contracts/ids.ts';
import type { Plan } from '../contracts/plan.ts';
import { type StorageTier, tierOfBucket } from '../contracts/storage-tiers.ts';
import type { JobState } from '../core/model/job-view.ts';
import { placeOfOutput, taskWithOutput } from '../core/model/lost-outputs.ts';
import {
  type LossCounts,
  type LossPrior,
  type LossRates,
  lossRates,
} from '../core/policy/mantri/loss-rate.ts';

/** The directory buckets that a job's outputs may be in, one for each zone; empty where they are in none. */
export const zonalBucketsOf = (plan: Pick<Plan, 'stages'> | undefined): readonly string[] =>
  plan?.stages[0]?.description.zonalBuckets ?? [];

/** Whether workers of the job keep outputs for others. */
const hasKeepers = (plan: Pick<Plan, 'stages'> | undefined): boolean =>
  plan?.stages.some(({ description }) => description.keptTasks !== undefined) === true;

/** All workers that keep outputs of a job, as one place: each of them is new, and of itself nothing is known. */
const allKeepers = 'workers';

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
  private readonly isWithKeepers: boolean;
  private readonly state: JobState;

  constructor(
    { dataBucket, config }: PlacesDeps,
    { plan, state }: { readonly plan: Pick<Plan, 'stages'>; readonly state: JobState },
  ) {
    this.zonalBuckets = zonalBucketsOf(plan);
    this.isWithKeepers = hasKeepers(plan);
    const isElsewhere = this.zonalBuckets.length > 0 || this.isWithKeepers;
    const declared = this.isWithKeepers ? 'worker-local' : 'zonal';
    this.tier = isElsewhere ? declared : (config.storage ?? tierOfBucket(dataBucket));
    this.copies = isElsewhere ? dataBucket : '';
    this.dataBucket = dataBucket;
    this.state = state;
  }

  /** Where the output of an attempt lies, or lay before it was lost; of a copy, somewhere. */
  of(id: AttemptId | undefined): string {
    const { dataBucket, zonalBuckets, state } = this;
    if (id === undefined) return dataBucket;
    if (this.isWithKeepers) return this.isKept(id) ? allKeepers : dataBucket;
    if (this.tier === 'worker-local') return state.attempts.get(id)?.node ?? dataBucket;
    if (zonalBuckets.length === 0) return dataBucket;
    // Of what is not read any more its worker tells, which is as good but where that could not write to its zone.
    const zone =
      taskWithOutput(state, id) === undefined ? state.attempts.get(id)?.zone : placeOfOutput(state, id).zone;
    return bucketOfZone(zonalBuckets, zone) ?? dataBucket;
  }

  /** Whether a worker keeps an output; of what is not read any more, since only those are lost. */
  private isKept(id: AttemptId): boolean {
    return taskWithOutput(this.state, id) === undefined || placeOfOutput(this.state, id).worker !== undefined;
  }

  /**
   * r of each place, by what was seen there and, instead of what is taken for granted of the job's tier, `prior`. What a
   * job on another tier has in the data bucket is on the tier of that.
   */
  rates(
    seen: ReadonlyMap<string, LossCounts>,
    prior: Pick<LossPrior, 'probability' | 'outputs'> | undefined,
  ): LossRates {
    const { dataBucket, zonalBuckets, tier } = this;
    const isElsewhere = this.copies !== '';
    const ofTier = [...seen].filter(([place]) => {
      if (this.isWithKeepers) return place === allKeepers;
      return isElsewhere ? zonalBuckets.includes(place) : !isDirectoryBucket(place);
    });
    const rates = lossRates(tier, new Map(ofTier), prior);
    if (!isElsewhere) return rates;
    const elsewhere = lossRates(tierOfBucket(dataBucket), new Map());
    return (place) => (place === dataBucket ? elsewhere : rates)(place);
  }
}
