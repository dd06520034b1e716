import { type ProfiledRun, type RunTimes, slotPasts, type SlotPast } from './job-profile.ts';

/** Where nothing is known of attempts on slots with one past, those with another stand for them, in this order. */
const standIns: Readonly<Record<SlotPast, readonly SlotPast[]>> = {
  cold: ['cold', 'first', 'later'],
  first: ['first', 'later', 'cold'],
  later: ['later', 'first', 'cold'],
};

/**
 * Run times of a stage on `slots` slots: those of the run on as many, else between the runs on the next fewer and the
 * next more, rank by rank, linearly by slots; beyond all of them those of the nearest.
 */
export function timesAt(runs: readonly ProfiledRun[], slots: number): RunTimes {
  const of = (past: SlotPast): readonly number[] => {
    const kind = standIns[past].find((each) => runs.some(({ times }) => times[each].length > 0));
    if (kind === undefined) return [];
    const telling = runs.filter(({ times }) => times[kind].length > 0);
    const fewer = telling.findLast((run) => run.slots <= slots) ?? telling[0];
    const more = telling.find((run) => run.slots >= slots) ?? telling.at(-1);
    if (fewer === undefined || more === undefined) return [];
    const span = more.slots - fewer.slots;
    return span <= 0
      ? fewer.times[kind]
      : between(fewer.times[kind], more.times[kind], (slots - fewer.slots) / span);
  };
  return { cold: of('cold'), first: of('first'), later: of('later') };
}

/** The sample that lies `share` of the way from one ascending sample to another, rank by rank. */
function between(from: readonly number[], to: readonly number[], share: number): readonly number[] {
  const size = Math.max(from.length, to.length);
  const at = (sample: readonly number[], rank: number): number =>
    sample[Math.min(sample.length - 1, Math.floor(((rank + 0.5) * sample.length) / size))] ?? 0;
  return Array.from({ length: size }, (_, rank) => {
    const low = at(from, rank);
    return low + (at(to, rank) - low) * share;
  });
}

/** Mean and longest of all attempts of a stage on `slots` slots, in ms; between runs as `timesAt`. */
export function meanAndLongest(
  runs: readonly ProfiledRun[],
  slots: number,
): { readonly meanMs: number; readonly longestMs: number } {
  const told = runs.map((run) => {
    const all = slotPasts.flatMap((past) => run.times[past]);
    const sum = all.reduce((total, each) => total + each, 0);
    return { slots: run.slots, meanMs: sum / Math.max(1, all.length), longestMs: Math.max(0, ...all) };
  });
  const fewer = told.findLast((run) => run.slots <= slots) ?? told[0];
  const more = told.find((run) => run.slots >= slots) ?? told.at(-1);
  if (fewer === undefined || more === undefined) return { meanMs: 0, longestMs: 0 };
  const span = more.slots - fewer.slots;
  const share = span <= 0 ? 0 : (slots - fewer.slots) / span;
  return {
    meanMs: fewer.meanMs + (more.meanMs - fewer.meanMs) * share,
    longestMs: fewer.longestMs + (more.longestMs - fewer.longestMs) * share,
  };
}
