import { expect, it } from 'vitest';
import { policyNames } from '../../src/contracts/policy-names.ts';
import { adversarialStage } from '../support/adversarial-stages.ts';
import { timesWithoutCopies, wrongsOf } from '../support/stage-verdict.ts';

/** `npm run test:stages` goes on from here. */
const seeds = 100;

const times = new Map<number, Promise<readonly number[] | undefined>>();

/** The same for a seed under every policy. */
function timesOf(seed: number): Promise<readonly number[] | undefined> {
  const known = times.get(seed) ?? timesWithoutCopies(adversarialStage(seed));
  times.set(seed, known);
  return known;
}

it.each(policyNames.filter((name) => name !== 'none'))(
  'under %s small stages that are hard to judge end, not much later than without copies, by few of them',
  async (policy) => {
    const wrong: string[] = [];
    for (let seed = 0; seed < seeds; seed++)
      for (const each of await wrongsOf(adversarialStage(seed), policy, await timesOf(seed)))
        wrong.push(`seed ${seed}: ${each}`);
    expect(wrong).toEqual([]);
  },
  seeds * 20_000,
);
