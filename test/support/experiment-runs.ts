import { fileURLToPath } from 'node:url';
import { type Experiment, type ExperimentResult, runExperiment } from '../../src/experiments/experiment.ts';
import { loadTraces } from '../../src/experiments/trace-library.ts';

/** The public traces, beside the checkout. */
export const sharedData = fileURLToPath(new URL('../../../shared/data', import.meta.url));

/** What an experiment finds in so many runs of each setting, the first of them with seed 1. */
export const resultOf = async (experiment: Experiment, count = 1): Promise<ExperimentResult> =>
  (
    await runExperiment(experiment, {
      seed: 1,
      count,
      traces: await loadTraces(sharedData, experiment.traces),
    })
  ).result;

/** Shapes of the paper that were not found. */
export const failedShapes = ({ checks }: ExperimentResult): string[] =>
  checks.filter(({ kind, ok }) => kind === 'shape' && !ok).map(({ what }) => what);
