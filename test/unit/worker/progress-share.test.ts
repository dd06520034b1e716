import { expect, it } from 'vitest';
import { ShareTeller } from '../../../src/worker/progress-share.ts';

const told = (shares: readonly number[]): number[] => {
  const teller = new ShareTeller();
  return shares.filter((share) => teller.isNews(share));
};

it('tells the first share, and then those a ten-thousandth further', () => {
  expect(told([0.5, 0.5, 0.4, 0.50005, 0.5001, 0.6, 0])).toEqual([0.5, 0.5001, 0.6]);
});

it('tells that nothing is done yet, and that all is', () => {
  expect(told([0, 0, 1e-5, 0.99995, 1, 1])).toEqual([0, 0.99995, 1]);
});

it('tells some ten thousand shares of however many', () => {
  const teller = new ShareTeller();
  let count = 0;
  for (let step = 0; step <= 3_000_000; step++) if (teller.isNews(step / 3_000_000)) count++;
  expect(count).toBeGreaterThan(9_000);
  expect(count).toBeLessThanOrEqual(10_001);
});
