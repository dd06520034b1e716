import { elapsedMs, type EpochMs } from '../../contracts/units.ts';

/** How fast an API may be called: so many calls at once after a rest, and then so many a second. */
export interface ApiRate {
  readonly perS: number;
  readonly burst: number;
}

/** How fast it is called now, and what may be called at once. */
export interface ApiPace {
  readonly rate: ApiRate;
  /** Calls a second: the rate's, or less after refusals. */
  readonly perS: number;
  /** Calls that may be made now. Not whole. */
  readonly tokens: number;
  readonly at: EpochMs;
  /** When it was slowed down last: calls that were under way together are refused together, and slow it once. */
  readonly slowedAt?: EpochMs;
}

/** The slowest pace: even where everything is refused something is tried. */
const leastPerS = 0.5;
/** Of the rate, what a call that was taken gives back of what refusals took. */
const recovery = 0.01;
const slowEveryMs = 1_000;

/** Nothing was called yet. */
export const startPace = (rate: ApiRate, now: EpochMs): ApiPace => ({
  rate,
  perS: rate.perS,
  tokens: rate.burst,
  at: now,
});

/** The pace as of `now`: what was not called since adds up to a burst. A clock that runs back changes nothing. */
export function paceAt(pace: ApiPace, now: EpochMs): ApiPace {
  const gained = (elapsedMs(pace.at, now) / 1_000) * pace.perS;
  const at = now > pace.at ? now : pace.at;
  return { ...pace, at, tokens: Math.min(pace.rate.burst, pace.tokens + gained) };
}

/** Takes one call out of the pace; undefined where none may be made now. */
export function takeCall(pace: ApiPace, now: EpochMs): ApiPace | undefined {
  const present = paceAt(pace, now);
  return present.tokens < 1 ? undefined : { ...present, tokens: present.tokens - 1 };
}

/** After a call that was taken: a little faster again, up to the rate. */
export const afterCall = (pace: ApiPace): ApiPace =>
  pace.perS >= pace.rate.perS
    ? pace
    : { ...pace, perS: Math.min(pace.rate.perS, pace.perS + pace.rate.perS * recovery) };

/** After a call that was refused for its rate: half as fast, once a second, and no more of a burst. */
export function afterRefusal(pace: ApiPace, now: EpochMs): ApiPace {
  const rested: ApiPace = { ...paceAt(pace, now), tokens: 0 };
  if (pace.slowedAt !== undefined && elapsedMs(pace.slowedAt, now) < slowEveryMs) return rested;
  return { ...rested, perS: Math.max(leastPerS, pace.perS / 2), slowedAt: now };
}
