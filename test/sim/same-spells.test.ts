import { expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { scenarioOf } from './scenarios.ts';

/** When spells of loss begin and end, by machine, up to a time, and how many losses of outputs there were in all. */
async function spellsUnder(policy: PolicyName, untilMs: number) {
  const scenario = scenarioOf({
    cluster: {
      nodes: [
        {
          count: 6,
          losses: {
            everyMs: { kind: 'exponential', mean: 40_000 },
            lastsMs: { kind: 'exponential', mean: 20_000 },
            share: 0.5,
          },
        },
      ],
    },
    faults: { untilMs: 400_000 },
    jobs: [
      {
        policy,
        stages: [
          {
            name: 'map',
            tasks: 40,
            workMs: { kind: 'uniform', min: 5_000, max: 40_000 },
            outputBytes: 1_000,
          },
          { name: 'reduce', tasks: 6, upstream: ['map'], workMs: 20_000 },
        ],
      },
    ],
  });
  const seenLosses = new Map(
    Array.from({ length: 6 }, (_, node) => [`n${node}`, { outputs: 1_000, lost: 500 }] as const),
  );
  const { trace } = await simulate(scenario, { seed: '3', trace: true, seenLosses });
  const losses = trace.filter((line) => / loss /.test(line));
  const ofPlaces = losses.filter(
    (line) => / loss \S+$/.test(line) && Number(line.split(' ', 1)[0]) <= untilMs,
  );
  return {
    spells: ofPlaces.map((line) => line.replace(/^(\d+) .* (\S+)$/, '$1 $2')),
    outputs: losses.length - ofPlaces.length,
  };
}

it('the same spells of loss meet every policy, however many outputs lie there and whatever becomes of them', async () => {
  // Both jobs go on for so long.
  const [none, mantri] = [await spellsUnder('none', 150_000), await spellsUnder('mantri', 150_000)];
  expect(none.spells.length).toBeGreaterThan(10);
  expect(none.outputs).toBeGreaterThan(5);
  expect(mantri.spells).toEqual(none.spells);
});
