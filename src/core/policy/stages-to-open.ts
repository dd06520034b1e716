import type { Decision } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import type { JobState, StageView } from '../model/job-view.ts';
import type { StageSplits } from '../model/tick-config.ts';

const areInputsDone = (state: JobState, { shape }: StageView): boolean =>
  shape.upstream.every((up) => stageAt(state, up).state === 'done');

/** Stages that have never opened, and are about to. */
export const stagesToBegin = (state: JobState): readonly StageView[] =>
  state.stages.filter((stage) => stage.state === 'waiting' && areInputsDone(state, stage));

/**
 * Stages that wait for inputs which are all complete, in order: those that wait to begin, with the partitions that are to
 * be split, or for what was made again.
 */
export function stagesToOpen(state: JobState, splits: readonly StageSplits[] = []): Decision[] {
  return state.stages
    .filter(
      (stage) =>
        (stage.state === 'waiting' || (stage.state === 'open' && stage.outdated.size > 0)) &&
        areInputsDone(state, stage),
    )
    .map(({ state: is, index, revision }) => {
      const split = is === 'waiting' ? splits.find(({ stage }) => stage === index)?.splits : undefined;
      return {
        kind: 'open-stage',
        stage: index,
        ...(is === 'waiting' ? {} : { revision: revision + 1 }),
        ...(split === undefined ? {} : { splits: split }),
      };
    });
}
