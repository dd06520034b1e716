import fc from 'fast-check';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { policyNames } from '../../src/contracts/policy-names.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { arbMutation, type Json, mutate } from './arbitraries.ts';

/** Where the inputs of all these jobs lie: a few small objects. */
export const sourceUri = 's3://data/in/';

const source = { s3: [sourceUri], splitBytes: 40 };
const inputs = [sourceUri];

/** Specs that are right, of every shape. */
const rightSpecs: readonly JobSpecInput[] = [
  { name: 'words', stages: builtinJob('wordcount', { inputs, splitBytes: 40, partitions: 3 }).stages },
  { name: 'sorted', stages: builtinJob('sort', { inputs, splitBytes: 40, partitions: 2 }).stages },
  { name: 'found', stages: builtinJob('grep', { inputs, pattern: 'a|b+', count: true }).stages },
  {
    name: 'grouped',
    stages: builtinJob('groupby', {
      inputs,
      format: 'csv',
      key: 'k',
      aggregates: [{ op: 'sum', column: 'v' }, { op: 'count' }],
    }).stages,
    deadline: '10m',
    budget: 3,
  },
  {
    name: 'joined',
    stages: builtinJob('join', { inputs, right: inputs, leftKey: 'k', rightKey: 'k', broadcast: true })
      .stages,
    policy: 'dolly',
    policyConfig: { dolly: { budgetShare: 1, utilizationCeiling: 1 } },
  },
  {
    name: 'programs',
    output: 's3://results/here/',
    stages: [
      { name: 'one', operator: 'exec', options: { command: ['cat'], env: { A: 'b' } }, inputs: [source] },
      { name: 'two', code: { s3: 's3://data/code.mjs', sha256: '0'.repeat(64) }, inputs: [source] },
      {
        name: 'three',
        operator: 'exec',
        options: { command: ['cat'] },
        inputs: [
          { stage: 'one', pattern: 'many-to-one' },
          { stage: 'two', pattern: 'many-to-one' },
        ],
        tasks: 2,
        worker: { kind: 'fargate', size: 'small' },
      },
    ],
  },
];

/** A spec that was right before it was changed in up to six places. */
export const arbSpec: fc.Arbitrary<Json> = fc
  .record({
    spec: fc.constantFrom(...rightSpecs),
    policy: fc.constantFrom(...policyNames),
    mutations: fc.array(arbMutation, { maxLength: 6 }),
  })
  .map(({ spec, policy, mutations }) =>
    mutate({ policy, ...(spec as unknown as Record<string, Json>) }, mutations),
  );
