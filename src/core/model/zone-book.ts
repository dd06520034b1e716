import { type EpochMs, isRecent } from '../../contracts/units.ts';

/**
 * What jobs tell each other of zones in which tasks are slow, so that not each job finds it out anew, in a third of its
 * tasks. Where zones are alike nothing is kept, so that where all is well nothing is written.
 */

/** How many times what tasks of its stage took elsewhere those in a zone took, and how many told so; 1 where it is not slow. */
export interface ToldZone {
  readonly zone: string;
  readonly factor: number;
  readonly samples: number;
}

/** What a stage has found of its zones when it was done. */
export interface ZoneSign {
  /** Of which stage of which job: what is told twice counts once. */
  readonly of: string;
  /** When the stage was done. */
  readonly at: EpochMs;
  readonly zones: readonly ToldZone[];
}

/** The newest first. */
export type ZoneBook = readonly ZoneSign[];

/** What a stage has found that ended so long ago tells nothing any more: a zone is slow for a while, and is tried again. */
const zonesToldForMs = 15 * 60_000;

const signsKept = 16;

/** Whether what was found then still tells something. */
export const stillTells = (at: EpochMs, now: EpochMs): boolean => isRecent(at, now, zonesToldForMs);

/**
 * Both books together: each stage's word once, in whatever order and however often they are put together. What is too
 * old is left out; of too many those of the stages that were done last stay.
 */
export function mergeZoneBooks(a: ZoneBook, b: ZoneBook, now: EpochMs): ZoneBook {
  const byStage = new Map([...b, ...a].map((sign) => [sign.of, sign]));
  return [...byStage.values()]
    .filter(({ at }) => stillTells(at, now))
    .sort((x, y) => y.at - x.at || (x.of < y.of ? -1 : 1))
    .slice(0, signsKept);
}

/**
 * What still tells something of a zone of which nothing newer does: all that a tick needs of the book, and as much as
 * there are zones, since the record of each tick has it.
 */
export function newestOfZones(book: ZoneBook, now: EpochMs): ZoneBook {
  const told = new Set<string>();
  return book.filter(({ at, zones }) => {
    if (!stillTells(at, now) || zones.every(({ zone }) => told.has(zone))) return false;
    for (const { zone } of zones) told.add(zone);
    return true;
  });
}

/** Whether a book says anything that another does not: then it is worth being written. */
export const saysMoreOfZones = (book: ZoneBook, known: ZoneBook): boolean => {
  const told = new Set(known.map(({ of }) => of));
  return book.some(({ of }) => !told.has(of));
};
