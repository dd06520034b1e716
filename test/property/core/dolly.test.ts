import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cloneCount } from '../../../src/core/policy/dolly/clone-count.ts';
import { clonesInTime, straggleWithCac, straggleWithCc } from '../../../src/experiments/clone-groups.ts';
import {
  type AssignmentSamples,
  bestWait,
  contendedReadMs,
  exclusiveReadMs,
  expectedTaskMs,
} from '../../../src/core/policy/dolly/delay-assignment.ts';
import {
  type CloneModel,
  jobLevelStraggle,
  taskLevelStraggle,
} from '../../../src/experiments/straggle-probability.ts';
import { createRng, type Rng } from '../../../src/lib/rng.ts';

const runs = 20_000;

/** Of each group of clones, how many do not straggle. */
const groupsInTime = ({ tasks, clones, stragglerProbability }: CloneModel, rng: Rng): number[] =>
  Array.from({ length: tasks }, () => {
    let inTime = 0;
    for (let clone = 0; clone < clones; clone++) if (rng.next() >= stragglerProbability) inTime += 1;
    return inTime;
  });

/** One job whose copies are whole jobs: it straggles if each copy has a straggling task. */
function jobCopiesStraggle({ tasks, clones, stragglerProbability }: CloneModel, rng: Rng): boolean {
  const copies = Array.from({ length: clones }, () =>
    Array.from({ length: tasks }, () => rng.next() < stragglerProbability),
  );
  return copies.every((late) => late.includes(true));
}

const anyLate = (groups: readonly number[]): boolean => groups.includes(0);

/** Two phases: the downstream clones of each task that have a source are as many as the least upstream group has in time. */
function twoPhases(model: CloneModel, rng: Rng, sources: (least: number) => number): boolean {
  const least = Math.min(...groupsInTime(model, rng));
  if (least === 0) return true;
  return anyLate(groupsInTime({ ...model, clones: sources(least) }, rng));
}

/** Share of runs in which something happens. */
function frequency(name: string, happens: (rng: Rng) => boolean): number {
  const rng = createRng(name);
  let count = 0;
  for (let run = 0; run < runs; run++) if (happens(rng)) count += 1;
  return count / runs;
}

/** Beyond four standard errors, and one event, an honest formula falls once in 10,000 comparisons. */
function expectAgrees(formula: number, observed: number): void {
  const error = Math.sqrt((formula * (1 - formula)) / runs);
  expect(Math.abs(formula - observed)).toBeLessThanOrEqual(4 * error + 1 / runs);
}

const grid: CloneModel[] = [1, 2, 5, 10, 20].flatMap((tasks) =>
  [1, 2, 3, 4].flatMap((clones) =>
    [0.02, 0.05, 0.1, 0.3].map((stragglerProbability) => ({ tasks, clones, stragglerProbability })),
  ),
);

describe('the closed forms agree with drawing every clone', () => {
  it('for clones of whole jobs and of tasks', () => {
    for (const model of grid) {
      const name = JSON.stringify(model);
      expectAgrees(
        jobLevelStraggle(model),
        frequency(`job ${name}`, (rng) => jobCopiesStraggle(model, rng)),
      );
      expectAgrees(
        taskLevelStraggle(model),
        frequency(`task ${name}`, (rng) => anyLate(groupsInTime(model, rng))),
      );
    }
  }, 60_000);

  it('for clones in time of all groups', () => {
    for (const model of grid) {
      for (let d = 0; d <= model.clones + 1; d++) {
        const observed = frequency(
          `psi ${d} ${JSON.stringify(model)}`,
          (rng) => Math.min(...groupsInTime(model, rng)) >= d,
        );
        expectAgrees(clonesInTime(model, d), observed);
      }
    }
  }, 60_000);

  it('for two phases with and without contention', () => {
    for (const model of grid) {
      const name = JSON.stringify(model);
      expectAgrees(
        straggleWithCac(model),
        frequency(`cac ${name}`, (rng) => twoPhases(model, rng, (least) => least)),
      );
      expectAgrees(
        straggleWithCc(model),
        frequency(`cc ${name}`, (rng) => twoPhases(model, rng, () => model.clones)),
      );
    }
  }, 60_000);
});

const arbModel = fc.record({
  tasks: fc.integer({ min: 1, max: 2_000 }),
  clones: fc.integer({ min: 1, max: 12 }),
  stragglerProbability: fc.double({ min: 1e-6, max: 0.999, noNaN: true }),
});

describe('the closed forms', () => {
  it('keep the risk with the clones counted, and not with one fewer', () => {
    fc.assert(
      fc.property(arbModel, fc.double({ min: 0.001, max: 0.5, noNaN: true }), (model, straggleRisk) => {
        const clones = cloneCount({ ...model, straggleRisk });
        expect(taskLevelStraggle({ ...model, clones })).toBeLessThanOrEqual(straggleRisk * (1 + 1e-6));
        if (clones > 1)
          expect(taskLevelStraggle({ ...model, clones: clones - 1 })).toBeGreaterThan(
            straggleRisk * (1 - 1e-6),
          );
      }),
    );
  });

  it('are probabilities, task-level cloning never worse than job-level, CC never worse than CAC', () => {
    fc.assert(
      fc.property(arbModel, (model) => {
        const values = [jobLevelStraggle, taskLevelStraggle, straggleWithCac, straggleWithCc].map((form) =>
          form(model),
        );
        for (const value of values) {
          expect(value).toBeGreaterThanOrEqual(-1e-12);
          expect(value).toBeLessThanOrEqual(1);
        }
        const [jobLevel = 0, taskLevel = 0, cac = 0, cc = 0] = values;
        expect(taskLevel).toBeLessThanOrEqual(jobLevel + 1e-12);
        expect(cc).toBeLessThanOrEqual(cac + 1e-12);
      }),
    );
  });
});

const positive = (max: number) => fc.integer({ min: 1, max });
const arbSamples: fc.Arbitrary<AssignmentSamples> = fc.record({
  sizeBytes: positive(10_000),
  flows: fc.array(
    fc.record({ bytesPerMs: positive(100), share: fc.double({ min: 0.05, max: 1, noNaN: true }) }),
    { minLength: 1, maxLength: 4 },
  ),
  gapsMs: fc.array(fc.oneof(positive(5_000), fc.constant(Infinity)), { minLength: 1, maxLength: 20 }),
  computeMs: fc.array(positive(10_000), { minLength: 1, maxLength: 20 }),
});

describe('delay assignment', () => {
  it('is never expected to be worse than sharing at once or reading in turn', () => {
    fc.assert(
      fc.property(arbSamples, (samples) => {
        const { waitMs, expectedMs } = bestWait(samples);
        expect(expectedMs).toBeLessThanOrEqual(expectedTaskMs(samples, 0) + 1e-9);
        const inTurn = Math.max(...samples.flows.map(({ bytesPerMs }) => samples.sizeBytes / bytesPerMs));
        expect(expectedMs).toBeLessThanOrEqual(expectedTaskMs(samples, inTurn) + 1e-9);
        expect(expectedTaskMs(samples, waitMs)).toBeCloseTo(expectedMs, 9);
      }),
      { numRuns: 50 },
    );
  });

  it('never has a clone read faster than alone, nor the second end before the first', () => {
    fc.assert(
      fc.property(
        positive(10_000),
        positive(100),
        fc.double({ min: 0.05, max: 1, noNaN: true }),
        fc.nat(20_000),
        (sizeBytes, bytesPerMs, share, waitMs) => {
          const read = { sizeBytes, bytesPerMs, share };
          for (const [first, second] of [contendedReadMs(read, waitMs), exclusiveReadMs(read, waitMs)]) {
            expect(first).toBeGreaterThanOrEqual(sizeBytes / bytesPerMs - 1e-9);
            expect(second).toBeGreaterThanOrEqual(first - 1e-9);
          }
        },
      ),
    );
  });
});
