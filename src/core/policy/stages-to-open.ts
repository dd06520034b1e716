import type { Decision } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import type { JobState, StageView } from '../model/job-view.ts';
import type { TickBudget } from '../model/tick-config.ts';

const areInputsDone = (state: JobState, { shape }: StageView): boolean =>
  shape.upstream.every((up) => stageAt(state, up).state === 'done');

/** Stages that have never opened, and are about to. */
export const stagesToBegin = (state: JobState): readonly StageView[] =>
  state.stages.filter((stage) => stage.state === 'waiting' && areInputsDone(state, stage));

/**
 * Stages that wait for inputs which are all complete, in order: those that wait to begin, with the partitions that are to
 * be split and the zones of their tasks, or for what was made again.
 */
export function stagesToOpen(
  state: JobState,
  { splits = [], placements = [] }: Pick<TickBudget, 'splits' | 'placements'> = {},
): Decision[] {
  return state.stages
    .filter(
      (stage) =>
        (stage.state === 'waiting' || (stage.state === 'open' && stage.outdated.size > 0)) &&
        areInputsDone(state, stage),
    )
    .map(({ state: is, index, revision }): Decision => {
      if (is !== 'waiting') return { kind: 'open-stage', stage: index, revision: revision + 1 };
      const split = splits.find(({ stage }) => stage === index);
      const placed = placements.find(({ stage }) => stage === index);
      return {
        kind: 'open-stage',
        stage: index,
        ...(split === undefined ? {} : { splits: split.splits }),
        ...(placed === undefined ? {} : { placement: placed.placement }),
      };
    });
}
