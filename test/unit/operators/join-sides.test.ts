import { describe, expect, it } from 'vitest';
import { checkSpec } from '../../../src/app/check-spec.ts';
import { parseInput } from '../../../src/contracts/invalid.ts';
import { jobSpecSchema, type JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { operators } from '../../../src/operators/registry.ts';

type Stage = JobSpecInput['stages'][number];
type Format = 'csv' | 'ndjson';

/** What a job of these stages is refused with. */
function refusal(...stages: readonly Stage[]): string | undefined {
  try {
    checkSpec(parseInput(jobSpecSchema, { name: 'job', stages: [...stages] }), {
      checkOperator: (operator, options) => {
        operators[operator].check(options);
      },
    });
  } catch (error) {
    if (error instanceof Error) return error.message;
    throw error;
  }
  return undefined;
}

describe('the two sides of a join', () => {
  const side = (name: string, more = {}, formats: readonly Format[] = ['ndjson']): Stage => ({
    ...{ name, operator: 'join-map', options: { key: 'k', ...more } },
    inputs: formats.map((format) => ({ s3: [`s3://bucket/${name}.${format}`], format })),
  });
  const keys = { leftKey: 'k', rightKey: 'k' };
  const reduce = (more = {}): Stage => ({
    ...{ name: 'join', operator: 'join-reduce', options: { ...keys, ...more } },
    inputs: [
      { stage: 'left', pattern: 'all-to-all' },
      { stage: 'right', pattern: 'all-to-all' },
    ],
  });
  const probe = (more = {}, format: Format = 'ndjson'): Stage => ({
    ...{ name: 'join', operator: 'join-probe', options: { key: 'k', ...keys, ...more } },
    inputs: [
      { s3: ['s3://bucket/left'], format },
      { stage: 'right', pattern: 'broadcast' },
    ],
  });

  it('compare keys in the same way', () => {
    const asText = { keysAsText: true };
    expect(refusal(side('left', asText), side('right', asText), reduce())).toBeUndefined();
    expect(refusal(side('left', { keysAsText: false }), side('right'), reduce())).toBeUndefined();
    expect(refusal(side('left', asText), side('right'), reduce())).toBe(
      'stages[1].options.keysAsText must be true in stage right, as it is in stage left: stage join joins the two, and keys that are equal would not meet',
    );
    expect(refusal(reduce(), side('right', asText), side('left'))).toBe(
      'stages[1].options.keysAsText must be false in stage right, as it is in stage left: stage join joins the two, and keys that are equal would not meet',
    );
    expect(refusal(side('right', asText), probe(asText))).toBeUndefined();
    expect(refusal(side('right'), probe(asText))).toBe(
      'stages[0].options.keysAsText must be true in stage right, as it is in stage join: stage join joins the two, and keys that are equal would not meet',
    );
  });

  it('may leave it out where all cells are texts anyway', () => {
    const asText = { keysAsText: true };
    expect(refusal(side('left', asText), side('right', {}, ['csv', 'csv']), reduce())).toBeUndefined();
    expect(refusal(side('left', {}, ['csv']), side('right', asText), reduce())).toBeUndefined();
    expect(refusal(side('right', asText), probe({}, 'csv'))).toBeUndefined();
    expect(refusal(side('right', {}, ['csv']), probe(asText))).toBeUndefined();
    // Keys of NDJSON meet those of CSV as they do without it on either side.
    expect(refusal(side('left', {}, ['csv']), side('right'), reduce())).toBeUndefined();
    for (const job of [
      [side('left', asText), side('right', {}, ['csv', 'ndjson']), reduce()],
      [side('left', asText, ['csv']), side('right'), reduce()],
      [side('right', asText), probe()],
      [side('right'), probe(asText, 'csv')],
    ])
      expect(refusal(...job)).toMatch(/\.keysAsText must be /);
  });

  it('have the keys that the join takes for theirs', () => {
    const id = { key: 'id' };
    expect(
      refusal(side('left'), side('right', id), reduce({ leftKey: 'k', rightKey: 'id' })),
    ).toBeUndefined();
    expect(refusal(side('left'), side('right', id), reduce())).toBe(
      'stages[2].options.rightKey must be what "key" of stage right is, "id", not "k"',
    );
    expect(refusal(side('left', id), side('right'), reduce())).toBe(
      'stages[2].options.leftKey must be what "key" of stage left is, "id", not "k"',
    );
    expect(refusal(side('right'), probe(id))).toBe(
      'stages[1].options.leftKey must be what its own "key" is, "id", not "k"',
    );
  });
});
