import type { Worker } from '../../contracts/job-spec.ts';
import type { AttemptView, StageView } from './job-view.ts';

const usual: Worker = { kind: 'lambda', size: 'medium' };

/** What an attempt of a stage runs on, or has run on; without one, what the stage's attempts run on at first. */
export const workerOf = (
  { shape }: Pick<StageView, 'shape'>,
  attempt?: Pick<AttemptView, 'worker'>,
): Worker => attempt?.worker ?? shape.worker ?? usual;
