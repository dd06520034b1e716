import { describe, expect, it } from 'vitest';
import { shapesOf } from '../../../src/app/load-plan.ts';
import { jobSpecSchema, type JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { parseJobId } from '../../../src/contracts/ids.ts';
import { inputField } from '../../../src/core/model/job-graph.ts';
import { planStages } from '../../../src/core/model/plan-stages.ts';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';

const object = { bucket: 'input', key: 'a.csv', sizeBytes: 100, etag: 'e' };

/** How many tasks may be added to each stage of a job, by its name; of those to which any may. */
function addable(input: JobSpecInput): Record<string, number> {
  const jobId = parseJobId('job-0123456789ab');
  if (jobId === undefined) throw new Error('no job id');
  const spec = jobSpecSchema.parse(input);
  const sources = new Map([0, 1].map((stage) => [inputField(stage, 0), [object]]));
  const output = { bucket: 'out', key: 'o/' };
  const { plan } = planStages(spec, sources, { jobId, nonce: 'n', dataBucket: 'data', output });
  return Object.fromEntries(
    shapesOf(plan).flatMap(({ name, addableTasks }) =>
      addableTasks === undefined ? [] : [[name, addableTasks]],
    ),
  );
}

const form = {
  inputs: ['s3://input/a.csv'],
  right: ['s3://input/a.csv'],
  format: 'csv',
  leftKey: 'k',
  rightKey: 'k',
} as const;
const join = builtinJob('join', { ...form, partitions: 3 });
const readBy = (pattern: 'one-to-one' | 'many-to-one' | 'all-to-all', partitions?: number): JobSpecInput => ({
  ...join,
  stages: [
    ...join.stages.map((stage) =>
      stage.name === 'join' && partitions !== undefined ? { ...stage, partitions } : stage,
    ),
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'join', pattern }] },
  ],
});

describe('shapesOf', () => {
  it('allows a join by shuffle as many tasks more as a stage may have, or its shuffle has segments', () => {
    expect(addable(join)).toEqual({ join: 9_997 });
    expect(addable(readBy('many-to-one'))).toEqual({ join: 9_997 });
    expect(addable(readBy('all-to-all', 1_000))).toEqual({ join: 997 });
  });

  it('allows none where another stage has a task for each of its tasks', () => {
    expect(addable(readBy('one-to-one'))).toEqual({});
  });

  it('allows stages of code what they say of their inputs', () => {
    const code = { s3: 's3://input/code', sha256: '0'.repeat(64) };
    const own = (cutInputs?: readonly number[]): JobSpecInput => ({
      ...join,
      stages: join.stages.map(({ operator, ...stage }) =>
        stage.name === 'join'
          ? { ...stage, code, ...(cutInputs === undefined ? {} : { cutInputs: [...cutInputs] }) }
          : { ...stage, operator },
      ),
    });
    expect(addable(own())).toEqual({});
    expect(addable(own([0]))).toEqual({ join: 9_997 });
    const problemsOf = (input: JobSpecInput) =>
      jobSpecSchema.safeParse(input).error?.issues.map(({ path, message }) => [path.join('.'), message]);
    expect(problemsOf(own([0, 2]))).toEqual([
      ['stages.2.cutInputs', 'must be places of inputs of the stage, from 0'],
    ]);
    expect(
      problemsOf({ ...join, stages: join.stages.map((stage) => ({ ...stage, cutInputs: [0] })) }),
    ).toEqual(
      [0, 1, 2].map((stage) => [
        `stages.${String(stage)}.cutInputs`,
        'must be left out: only stages of "code" whose inputs, two or more, are all all-to-all read parts of partitions',
      ]),
    );
  });

  it('allows none for operators that need whole partitions, nor for a join by broadcast', () => {
    expect(addable(builtinJob('join', { ...form, broadcast: true }))).toEqual({});
    const groups = {
      inputs: ['s3://input/a.csv'],
      format: 'csv',
      key: 'k',
      aggregates: [{ op: 'count' }],
    } as const;
    expect(addable(builtinJob('groupby', groups))).toEqual({});
  });
});
