import { expect, it } from 'vitest';
import type { TickBudget } from '../../../src/core/model/tick-config.ts';
import { createJobState, taskAt } from '../../../src/core/model/job-state.ts';
import { decodeBudget, encodeBudget } from '../../../src/core/replay/journal-lines.ts';

it('is read from a journal as it was written, with what may begin while launches are refused', () => {
  const state = createJobState([{ name: 'map', tasks: 3, upstream: [], sourceBytes: [1, 1, 1] }]);
  const budget: TickBudget = {
    slots: 4,
    cancelRequested: false,
    room: {
      stages: new Set([0]),
      launches: 2,
      elsewhere: new Set([taskAt(state, 0, 1)]),
      refused: { stages: new Set([2]), launches: 1, beyond: 7 },
    },
  };
  const line = JSON.parse(JSON.stringify(encodeBudget(budget))) as ReturnType<typeof encodeBudget>;
  expect(decodeBudget(line, state)).toEqual(budget);
});
