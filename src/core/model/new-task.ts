import type { EpochMs } from '../../contracts/units.ts';
import type { TaskView } from './job-view.ts';

/** A task of which nothing has happened, and that reads so much of sources. */
export const newTask = (stage: number, index: number, inputBytes: number): TaskView => ({
  stage,
  index,
  inputBytes,
  told: undefined,
  attempts: [],
  failures: 0,
  notBefore: 0 as EpochMs,
  lostOutputs: [],
  since: 0,
  replicas: [],
  measured: false,
  isFirstOwed: false,
});
