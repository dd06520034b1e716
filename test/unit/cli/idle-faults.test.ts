import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { idleFaults, refuseIdleZones } from '../../../src/cli/idle-faults.ts';
import { parseInjection } from '../../../src/local/inject/injection.ts';

const onLambda: JobSpecInput = {
  name: 'counts',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['in.txt'] }] },
    { name: 'sum', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};
const onFargate: JobSpecInput = {
  ...onLambda,
  stages: onLambda.stages.map((stage) => ({ ...stage, worker: { kind: 'fargate' } })),
};
const onBoth: JobSpecInput = {
  ...onLambda,
  stages: [...onLambda.stages.slice(0, 1), ...onFargate.stages.slice(1)],
};
const oneStage: JobSpecInput = { ...onLambda, stages: onLambda.stages.slice(0, 1) };
const keptByWorkers: JobSpecInput = { ...onFargate, storage: 'worker-local' };

const told = (faults: string, spec: JobSpecInput): readonly string[] =>
  idleFaults(parseInjection(faults), spec);
const refusal = (faults: string, spec: JobSpecInput): (() => void) => {
  return () => {
    refuseIdleZones(parseInjection(faults), spec);
  };
};

describe('faults that cannot befall a job', () => {
  it.each([
    ['spot=1', onLambda, '--inject spot harms tasks on Fargate alone'],
    ['cold-start=0.5@2', onFargate, '--inject cold-start harms workers on Lambda alone'],
    ['kill=1,lose-invocation=1', onFargate, '--inject lose-invocation harms workers on Lambda alone'],
    ['duplicate-invocation=2', onFargate, '--inject duplicate-invocation harms workers on Lambda alone'],
    ['lose-object=1', oneStage, '--inject lose-object harms what stages write for each other'],
    ['corrupt-object=1', oneStage, '--inject corrupt-object harms what stages write for each other'],
    ['lose-object=1', keptByWorkers, '--inject lose-object harms outputs on S3 alone'],
    ['corrupt-object=2', keptByWorkers, '--inject corrupt-object harms outputs on S3 alone'],
  ] as const)('are told, with what they harm: %s', (faults, spec, message) => {
    expect(told(faults, spec)).toEqual([expect.stringContaining(message)]);
  });

  it('are all told of a job that none of them can befall', () => {
    expect(told('spot=1,lose-object=1,corrupt-object=1', oneStage)).toHaveLength(3);
  });

  it('are none where a stage is of the kind that they harm, and none that harm all kinds', () => {
    const ofBoth =
      'spot=1,cold-start=0.5@2,lose-invocation=1,duplicate-invocation=1,lose-object=1,corrupt-object=1';
    expect(told(ofBoth, onBoth)).toEqual([]);
    for (const spec of [onLambda, onFargate, oneStage])
      expect(told('slow=2x1,kill=1,memory-hog=1,throttle=0.5,pause=0.5@1,skew=0.5@1', spec)).toEqual([]);
    // What is made again after a loss lies on S3, and what a worker has to hand over.
    expect(told('lose-object=1,kill=1', keptByWorkers)).toEqual([]);
    expect(told('corrupt-object=1,spot=1', keptByWorkers)).toEqual([]);
  });
});

describe('zones in which a job has nothing', () => {
  it.each([
    ['slow-zone=us-east-1a@2', onLambda, '--inject slow-zone=us-east-1a slows tasks on Fargate alone'],
    ['lose-zone=use1-az1@1', onLambda, 'this one has its intermediate data on "standard"'],
    ['slow-zone=use1-az1@2', keptByWorkers, 'this one has its intermediate data on "worker-local"'],
  ] as const)('are refused, with what they harm: %s', (faults, spec, message) => {
    expect(refusal(faults, spec)).toThrow(message);
  });

  it('are none where its storage or its tasks are there', () => {
    expect(refusal('lose-zone=use1-az1@1', { ...onLambda, storage: 'zonal' })).not.toThrow();
    expect(refusal('slow-zone=us-east-1a@2', onBoth)).not.toThrow();
  });
});
