import { expect, it } from 'vitest';
import { attemptLife, isLive, isWorking } from '../../../../src/core/model/attempt-life.ts';

it.each([
  ['launched', true, false],
  ['running', true, true],
  ['done', false, false],
  ['failed', false, false],
  ['cancelled', false, false],
  ['lost', false, false],
] as const)(
  'says of an attempt that is %s whether it holds a slot and whether it works',
  (state, live, working) => {
    expect([isLive({ state }), isWorking({ state })]).toEqual([live, working]);
  },
);

it('lets nothing follow an end, and all that lives come to one', () => {
  for (const [state, { isLive: live, next }] of Object.entries(attemptLife)) {
    expect(next.length > 0, state).toBe(live);
    if (live) expect(next).toContain('lost');
  }
});
