import type { Decision } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import type { JobState } from '../model/job-view.ts';

/** Stages that wait for inputs which are all complete, in order: those that wait to begin, or for what was made again. */
export function stagesToOpen(state: JobState): Decision[] {
  return state.stages
    .filter(
      ({ state: is, outdated, shape }) =>
        (is === 'waiting' || (is === 'open' && outdated.size > 0)) &&
        shape.upstream.every((up) => stageAt(state, up).state === 'done'),
    )
    .map(({ state: is, index, revision }) => ({
      kind: 'open-stage',
      stage: index,
      ...(is === 'waiting' ? {} : { revision: revision + 1 }),
    }));
}
