import type { JobSpecInput } from '../../src/contracts/job-spec.ts';

/** The default policy where outputs are known to be lost often, so that each is worth a copy. */
export const whereOutputsAreLost = (copies: boolean): Pick<JobSpecInput, 'policy' | 'policyConfig'> => ({
  policy: 'outrider',
  policyConfig: {
    mantri: {
      ...{ lossPrior: { probability: 0.5, outputs: 20 }, copyLatencyMs: 10 },
      ...{ replicates: copies, precomputes: copies },
    },
  },
});

/** A search for lines that end in 77, of which the first task takes `firstS` seconds longer than the others. */
export const findStage = (
  input: string,
  { splitBytes, firstS, partitions }: { splitBytes: number; firstS: number; partitions: number },
): JobSpecInput['stages'][number] => ({
  name: 'find',
  operator: 'exec',
  options: {
    command: ['sh', '-c', `if [ "$OUTRIDER_TASK" = 0 ]; then sleep ${firstS}; fi; sleep 0.2; grep "77$"`],
  },
  inputs: [{ s3: [input], splitBytes }],
  partitions,
});
