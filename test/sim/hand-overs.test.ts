import { describe, expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { metricsOf } from '../../src/sim/metrics.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { scenarioOf } from './scenarios.ts';

type Progress = ScenarioInput['jobs'][number]['stages'][number]['progress'];

/** Share of its work that a task has done, and of its input that it has read by then. */
const shapes: readonly (readonly [name: string, progress: Progress])[] = [
  [
    'even',
    [
      [0, 0],
      [1, 1],
    ],
  ],
  [
    'slow at first',
    [
      [0, 0],
      [0.4, 0.05],
      [1, 1],
    ],
  ],
  [
    'slow in the end',
    [
      [0, 0],
      [0.2, 0.8],
      [1, 1],
    ],
  ],
  [
    'read at once',
    [
      [0, 0],
      [0.01, 1],
      [1, 1],
    ],
  ],
];

const tasks = 40;

interface Case {
  readonly policy: PolicyName;
  readonly progress: Progress;
  readonly handOverMs?: number | undefined;
  readonly slots?: number;
  /** What the last task's first attempt takes. */
  readonly lastMs?: number;
  readonly taskMs?: number;
}

/** Forty tasks of five minutes, or of `taskMs`: more make each tick longer, and no other decisions. */
async function measured({
  policy,
  progress,
  handOverMs,
  slots = 10,
  taskMs = 300_000,
  lastMs = taskMs,
}: Case) {
  const attemptsMs = Array.from({ length: tasks }, (_, task) => [
    task === tasks - 1 ? lastMs : taskMs,
    taskMs,
  ]);
  const scenario: ScenarioInput = {
    cluster: { nodes: [{ count: slots }] },
    reports: { everyMs: 10_000 },
    scheduler: { tickMs: 2_000, ...(handOverMs !== undefined && { handOverMs }) },
    jobs: [{ policy, stages: [{ name: 'map', tasks, workMs: taskMs, attemptsMs, progress }] }],
  };
  return metricsOf(await simulate(scenarioOf(scenario), { seed: '1' }));
}

/** All the time, in the first wave and in the second, and as production does: every thirteen minutes, in the third. */
const handOvers = [40_000, 320_000, 430_000, 780_000];

describe.each(shapes)('tasks whose progress is %s', (_name, progress) => {
  it.each(['outrider', 'late'] as const)(
    'are not copied where all are alike, whenever another scheduler takes their job over: %s',
    async (policy) => {
      for (const slots of [10, 24])
        for (const handOverMs of handOvers) {
          const { copies, completionS } = await measured({ policy, progress, handOverMs, slots });
          expect({ slots, handOverMs, ...copies }).toEqual({ slots, handOverMs, started: 0, won: 0 });
          expect(completionS.mean).toBeLessThanOrEqual(Math.ceil(tasks / slots) * 300 + 20);
        }
    },
  );

  it('are helped where one takes an hour', async () => {
    for (const handOverMs of handOvers) {
      const { completionS } = await measured({
        ...{ policy: 'outrider', progress, handOverMs, lastMs: 3_600_000 },
      });
      expect(completionS.mean).toBeLessThanOrEqual(2_000);
    }
  });

  // Of such tasks no scheduler sees the beginning and the end.
  it.each(['outrider', 'mantri'] as const)(
    'are helped as soon where every scheduler serves their job for less than one takes: %s',
    async (policy) => {
      const given = { policy, progress, slots: 20, taskMs: 1_200_000, lastMs: 3_600_000 };
      const alone = await measured(given);
      for (const handOverMs of [300_000, 780_000]) {
        const { completionS, copies } = await measured({ ...given, handOverMs });
        expect(completionS.mean).toBeLessThanOrEqual(alone.completionS.mean + 60);
        expect(copies.started).toBeLessThanOrEqual(alone.copies.started);
      }
    },
  );
});
