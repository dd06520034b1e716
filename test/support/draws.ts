/** Of random draws, the share that is wanted: all, but in `npm test`, which sees little at once and often. */
const share = Number(process.env['OUTRIDER_TEST_DRAWS'] ?? '1');
/** Fewer would hold nothing. */
const least = 5;

/** How many draws of `all` a test makes. */
export const draws = (all: number): number => Math.max(Math.min(all, least), Math.ceil(all * share));
