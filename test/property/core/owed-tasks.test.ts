import fc from 'fast-check';
import { expect, it } from 'vitest';
import { epochMs } from '../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  cancelAttempt,
  createJobState,
  loseAttempt,
  openStage,
  resumeAttempt,
  stageAt,
  taskAt,
  withdrawAttempt,
} from '../../../src/core/model/job-state.ts';
import type { JobState, StageView } from '../../../src/core/model/job-view.ts';
import { loseOutput } from '../../../src/core/model/lost-outputs.ts';
import { attempt, attemptRecord, failure, resultOf } from '../../support/job-states.ts';

const shapes = [
  { name: 'map', tasks: 3, upstream: [], sourceBytes: [20, 50, 30] },
  { name: 'reduce', tasks: 2, upstream: [0], sourceBytes: [0, 0] },
];

type Act = (state: JobState, id: ReturnType<typeof attempt>, now: ReturnType<typeof epochMs>) => void;

/** What may become of a job's attempts, in any order: of some the scheduler does not know, since it withdrew them. */
const steps = {
  withdraw: withdrawAttempt,
  commit: (state, id, now) => {
    applyResult(state, resultOf(id, now, [10, 10]), now);
  },
  claim: (state, id, now) => {
    applyAttempt(state, attemptRecord(id, 'running', now), now);
  },
  fail: (state, id, now) => {
    applyAttempt(state, attemptRecord(id, 'failed', now, { failure: failure('user-code') }), now);
  },
  succeed: (state, id, now) => {
    applyAttempt(state, attemptRecord(id, 'done', now), now);
  },
  giveUp: loseAttempt,
  resume: resumeAttempt,
  cancel: (state, id, now) => {
    cancelAttempt(state, id, now, 'pruned');
  },
  loseOutput: (state, id) => {
    loseOutput(state, id);
  },
} as const satisfies Record<string, Act>;

const arbStep = fc.record({
  what: fc.constantFrom(
    'open' as const,
    ...Array.from({ length: 4 }, () => 'launch' as const),
    ...(Object.keys(steps) as (keyof typeof steps)[]),
  ),
  stage: fc.nat(1),
  task: fc.nat(2),
  number: fc.nat(2),
});

type Step = typeof arbStep extends fc.Arbitrary<infer T> ? T : never;

function step(state: JobState, { what, stage, task, number }: Step, now: number): void {
  const { tasks, shape, openedAt } = stageAt(state, stage);
  const place = task % tasks.length;
  const at = epochMs(now);
  if (what === 'open') openStage(state, stage, [], at);
  else if (what === 'launch') {
    const next = taskAt(state, stage, place).attempts.length;
    if (openedAt === undefined) return;
    addAttempt(state, attempt(`${shape.name}/${place}/${next}`), next === 0 ? 'first' : 'retry', at);
  } else steps[what](state, attempt(`${shape.name}/${place}/${number}`), at);
}

/** Tasks that are owed their first attempt, by what that means. */
const owedFirst = ({ openedAt, tasks }: StageView): readonly number[] =>
  tasks
    .filter(({ attempts, result }) => openedAt !== undefined && attempts.length === 0 && result === undefined)
    .map(({ index }) => index);

it('tasks of an open stage with neither attempt nor result are owed a first one, whatever has happened to others', () => {
  fc.assert(
    fc.property(fc.array(arbStep, { maxLength: 60 }), (drawnSteps) => {
      const state = createJobState(shapes);
      for (const [number, each] of drawnSteps.entries()) {
        step(state, each, number + 1);
        for (const stage of state.stages) {
          const owed = owedFirst(stage);
          expect(stage.unstarted).toBe(owed.length);
          // The cursor stands at the first of them, or behind all.
          const first = stage.order.findIndex((task) => owed.includes(task));
          expect(stage.nextFirst).toBe(first < 0 ? stage.order.length : first);
        }
      }
    }),
    { numRuns: 300 },
  );
});
