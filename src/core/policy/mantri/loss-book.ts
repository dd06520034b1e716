import { type EpochMs, isRecent } from '../../../contracts/units.ts';
import { addLosses, type LossCounts } from './loss-rate.ts';

/** What one job has seen of outputs at a place by its end. */
export interface LossSign extends LossCounts {
  /** The job: what is told twice counts once. */
  readonly of: string;
  readonly at: EpochMs;
}

/** A place at which outputs were lost of late, and what the last jobs have seen there, the newest last. */
export interface LossEntry {
  readonly place: string;
  readonly signs: readonly LossSign[];
}

/**
 * What jobs tell each other of lost outputs. Of a place at which none was lost nothing is kept, so that where all is well
 * nothing is written; of another also what jobs have seen that lost nothing there, or r would be that of unlucky ones.
 */
export type LossBook = readonly LossEntry[];

/** What was seen so long ago tells nothing any more. */
const keptMs = 14 * 24 * 60 * 60_000;
/** The last jobs of each place, and places: a few kilobytes together. */
const signsKept = 32;
const placesKept = 8;

const newestOf = ({ signs }: LossEntry): number => signs.at(-1)?.at ?? 0;

/**
 * The book with what a job has seen, by place; once, however often it is told. What is too old is left out, and with it
 * places where nothing was lost since; of too many those stay that were seen last.
 */
export function tellLosses(
  book: LossBook,
  job: { readonly of: string; readonly counts: ReadonlyMap<string, LossCounts> },
  now: EpochMs,
): LossBook {
  const signsAt = new Map(book.map(({ place, signs }) => [place, signs]));
  for (const [place, { outputs, lost }] of job.counts) {
    const others = (signsAt.get(place) ?? []).filter(({ of }) => of !== job.of);
    signsAt.set(place, [...others, { of: job.of, at: now, outputs, lost }]);
  }
  return [...signsAt]
    .map(([place, signs]) => ({
      place,
      signs: signs.filter(({ at }) => isRecent(at, now, keptMs)).slice(-signsKept),
    }))
    .filter(({ signs }) => signs.some(({ lost }) => lost > 0))
    .sort((x, y) => newestOf(y) - newestOf(x) || (x.place < y.place ? -1 : 1))
    .slice(0, placesKept);
}

/** What other jobs than `job` have seen of late, by place. */
export function lossesOfOthers(book: LossBook, job: string, now: EpochMs): ReadonlyMap<string, LossCounts> {
  const counts = new Map<string, LossCounts>();
  for (const { place, signs } of book)
    for (const sign of signs)
      if (sign.of !== job && isRecent(sign.at, now, keptMs)) addLosses(counts, place, sign);
  return counts;
}

/** Whether a book tells of a job what another does not. */
export const tellsMore = (book: LossBook, known: LossBook, job: string): boolean => {
  const told = (each: LossBook): string =>
    JSON.stringify(
      each
        .flatMap(({ place, signs }) =>
          signs.flatMap(({ of, outputs, lost }) => (of === job ? [[place, outputs, lost]] : [])),
        )
        .sort(),
    );
  return told(book) !== told(known);
};
