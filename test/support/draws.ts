/** Of random draws, the share that is wanted: all, but in `npm test` and `.ci/run`, which see less at once and more often. */
const share = Number(process.env['OUTRIDER_TEST_DRAWS'] ?? '1');
/** Fewer would hold nothing. */
const least = 5;

/** How many draws of `all` a test makes. */
export const draws = (all: number): number => Math.max(Math.min(all, least), Math.ceil(all * share));

/** Whether all is wanted, and so what takes minutes and comes out alike until the rules are changed. */
export const isWhole = share >= 1;

/** All cases where all draws are wanted, else any one of them, so that other runs take others. */
export const someOf = <T>(cases: readonly T[]): readonly T[] => {
  const at = Math.floor(Math.random() * cases.length);
  return isWhole ? cases : cases.slice(at, at + 1);
};
