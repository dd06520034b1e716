import { describe, expect, it } from 'vitest';
import { submitRequestSchema } from '../../../src/contracts/api.ts';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { parseInput } from '../../../src/contracts/invalid.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import { jobGraph } from '../../../src/core/model/job-graph.ts';

const source = { s3: ['s3://bucket/in/'] };
const map = { name: 'map', operator: 'tokenize', inputs: [source] };
const from = (stage: string, pattern = 'all-to-all') => ({ stage, pattern });
const reduce = { name: 'reduce', operator: 'sum-counts', inputs: [from('map')] };

function refusal(spec: unknown): { message: string; field: unknown } {
  try {
    jobGraph(parseInput(jobSpecSchema, spec));
  } catch (error) {
    if (error instanceof InvalidInputError) return { message: error.message, field: error.details['field'] };
    throw error;
  }
  throw new Error('was accepted');
}

describe('jobGraph', () => {
  it('orders stages so that each comes after those it reads, the output last', () => {
    const spec = parseInput(jobSpecSchema, { name: 'words', stages: [reduce, map] });
    expect(jobGraph(spec).map((stage) => stage.spec.name)).toEqual(['map', 'reduce']);
  });

  it.each([
    [
      'two stages of one name',
      { name: 'j', stages: [map, { ...map }] },
      'stages[1].name',
      /must differ from stages\[0\]/,
    ],
    [
      'an unknown stage',
      { name: 'j', stages: [map, { ...reduce, inputs: [from('nope')] }] },
      'stages[1].inputs[0].stage',
      /must be the name of a stage \(map, reduce\), not "nope"/,
    ],
    [
      'a stage that reads itself',
      { name: 'j', stages: [map, { ...reduce, inputs: [from('reduce')] }] },
      'stages[1].inputs[0].stage',
      /itself/,
    ],
    [
      'a cycle',
      {
        name: 'j',
        stages: [
          { ...reduce, name: 'a', inputs: [from('b')] },
          { ...reduce, name: 'b', inputs: [from('a')] },
        ],
      },
      'stages[0].inputs',
      /cycle: a → b → a/,
    ],
    [
      'a stage that leads nowhere',
      { name: 'j', stages: [map, { ...map, name: 'idle' }, reduce] },
      'stages[1]',
      /unreachable/,
    ],
    ['no inputs', { name: 'j', stages: [{ ...map, inputs: [] }] }, 'stages[0].inputs', /at least one input/],
    [
      'an empty list of objects',
      { name: 'j', stages: [{ ...map, inputs: [{ s3: [] }] }] },
      'stages[0].inputs[0].s3',
      /at least one/,
    ],
    [
      'partitions that nobody reads',
      { name: 'j', stages: [{ ...map, partitions: 3 }] },
      'stages[0].partitions',
      /must be left out/,
    ],
    [
      'only broadcast inputs',
      { name: 'j', stages: [map, { ...reduce, inputs: [from('map', 'broadcast')] }] },
      'stages[1].inputs',
      /not broadcast/,
    ],
    [
      'an unknown operator',
      { name: 'j', stages: [{ ...map, operator: 'sorcery' }] },
      'stages[0].operator',
      /tokenize/,
    ],
    [
      'neither operator nor code',
      { name: 'j', stages: [{ name: 'map', inputs: [source] }] },
      'stages[0].operator',
      /exactly one/,
    ],
    ['an unknown field', { name: 'j', stages: [map], colour: 1 }, 'colour', /not a known field/],
    ['a bad deadline', { name: 'j', stages: [map], deadline: 'soon' }, 'deadline', /from 1s to 7d/],
    ['a bad name', { name: 'J!', stages: [map] }, 'name', /a-z/],
    ['a missing name', { stages: [map] }, 'name', /missing/],
    [
      'too many partitions',
      { name: 'j', stages: [{ ...map, partitions: 1001 }, reduce] },
      'stages[0].partitions',
      /1000/,
    ],
    [
      'a bad URI',
      { name: 'j', stages: [{ ...map, inputs: [{ s3: ['/tmp/x'] }] }] },
      'stages[0].inputs[0].s3[0]',
      /s3:\/\/bucket\/key/,
    ],
    [
      'a bad pattern',
      { name: 'j', stages: [map, { ...reduce, inputs: [from('map', 'some')] }] },
      'stages[1].inputs[0].pattern',
      /all-to-all/,
    ],
  ])('refuses %s and names the field', (_what, spec, field, message) => {
    const refused = refusal(spec);
    expect(refused.field).toBe(field);
    expect(refused.message).toMatch(message);
    expect(refused.message).not.toMatch(/\n/);
  });

  it('names the field within a submission', () => {
    expect(() => parseInput(submitRequestSchema, { spec: { name: 'j', stages: [] } })).toThrow(
      /^spec\.stages must have at least one stage/,
    );
  });
});
