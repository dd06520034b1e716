import type { CostedJob } from './costed-job.ts';

/** A job, and the most that it may cost on top of its compute, as shares of that. */
export interface CostCase extends CostedJob {
  readonly most: {
    /** Everything but the compute. */
    readonly all: number;
    /** Records and scheduling alone: all but the requests of S3. */
    readonly scheduling?: number;
  };
}

const minute = 60_000;
const base = { mapMs: minute, reduces: 0, reduceMs: 0, slots: 900, workerGb: 1 } as const;

/** A shuffle of maps of a minute to 100 reduces of a minute. */
export const shuffleOf = (maps: number, slots: number): CostedJob => ({
  ...base,
  ...{ maps, slots, reduces: 100, reduceMs: minute },
});

/** Jobs whose costs are bounded, by what the bench calls them. */
export const costCases = {
  'one stage of 1,000 x 60 s': { ...base, maps: 1_000, most: { all: 0.04, scheduling: 0.015 } },
  'ten tasks of 10 s': { ...base, maps: 10, mapMs: 10_000, most: { all: 0.3 } },
  // A tenth of the next one, of which each map makes as many requests and is read as often.
  '1,000 x 60 s maps, 100 reduces': { ...shuffleOf(1_000, 900), most: { all: 0.08 } },
  '10,000 x 60 s maps, 100 reduces': { ...shuffleOf(10_000, 900), most: { all: 0.08 } },
} as const satisfies Readonly<Record<string, CostCase>>;
