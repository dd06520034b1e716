import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { parseInput } from '../../../src/contracts/invalid.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';

const stage = { name: 'find', operator: 'grep', inputs: [{ s3: ['s3://books/en/'] }] };

/** What is said of a spec, and the field that it names. */
function said(spec: unknown): readonly [string, unknown] {
  try {
    parseInput(jobSpecSchema, spec, 'spec');
  } catch (error) {
    if (error instanceof InvalidInputError) return [error.message, error.details['field']];
    throw error;
  }
  return ['nothing', undefined];
}

describe('what is said of a wrong spec', () => {
  it('names a field that was likely meant', () => {
    expect(said({ name: 'a', stages: [stage], polici: 'late' })).toEqual([
      'spec.polici is not a known field; did you mean "policy"?',
      'spec.polici',
    ]);
    expect(said({ name: 'a', stage: [stage] })[0]).toBe(
      'spec.stages is missing; it must be a list; spec.stage is not a known field; did you mean "stages"?',
    );
  });

  it('does so deep inside, under alternatives and default values', () => {
    const inputs = [{ s3: ['s3://books/en/'], splitbytes: 64 }];
    expect(said({ name: 'a', stages: [{ ...stage, inputs }] })[0]).toBe(
      'spec.stages[0].inputs[0].splitbytes is not a known field; did you mean "splitBytes"?',
    );
    expect(said({ name: 'a', stages: [{ ...stage, worker: { sise: 'small' } }] })[0]).toBe(
      'spec.stages[0].worker.sise is not a known field; did you mean "size"?',
    );
  });

  it('tells fields of both kinds of inputs apart', () => {
    const inputSaid = (input: object) => said({ name: 'a', stages: [{ ...stage, inputs: [input] }] })[0];
    const [objects, read] = [{ s3: ['s3://books/en/'] }, { stage: 'map', pattern: 'one-to-one' }];
    expect(inputSaid({ ...objects, stage: 'map' })).toBe(
      'spec.stages[0].inputs[0].stage must be left out beside "s3": it goes with "pattern"',
    );
    expect(inputSaid({ ...objects, pattern: 'broadcast' })).toBe(
      'spec.stages[0].inputs[0].pattern must be left out beside "s3": it goes with "stage"',
    );
    expect(inputSaid({ ...objects, format: 'csv', pattern: 'broadcast' })).toBe(
      'spec.stages[0].inputs[0].pattern must be left out beside "s3" and "format": it goes with "stage"',
    );
    expect(inputSaid({ ...read, format: 'csv' })).toBe(
      'spec.stages[0].inputs[0].format must be left out beside "stage" and "pattern": it goes with "s3"',
    );
    expect(inputSaid({ ...objects, ...read })).toBe(
      'spec.stages[0].inputs[0] must be { "s3": […] } or { "stage": …, "pattern": … }',
    );
  });

  it('means by a misspelt field one of the same kind of input', () => {
    const inputSaid = (input: object) => said({ name: 'a', stages: [{ ...stage, inputs: [input] }] })[0];
    const place = 'spec.stages[0].inputs[0]';
    expect(inputSaid({ stage: 'map', pattern: 'one-to-one', formt: 'csv' })).toBe(
      `${place}.formt is not a known field`,
    );
    expect(inputSaid({ s3: ['s3://books/en/'], formt: 'csv' })).toBe(
      `${place}.formt is not a known field; did you mean "format"?`,
    );
    expect(inputSaid({ s3: ['s3://books/en/'], Stage: 'map' })).toBe(`${place}.Stage is not a known field`);
  });

  it('suggests nothing where nothing is alike', () => {
    expect(said({ name: 'a', stages: [stage], colour: 'red' })).toEqual([
      'spec.colour is not a known field',
      'spec.colour',
    ]);
    expect(said({ name: 'a', stages: [stage], __defineGetter__: 1, constructor: 2 })[0]).toBe(
      'spec.__defineGetter__ is not a known field; spec.constructor is not a known field',
    );
  });

  it('names all that is wrong at once, the first as its field, and not without end', () => {
    expect(said({ name: 'A', stages: [], version: 2 })).toEqual([
      'spec.version must be 1; spec.name must be 1 to 48 of a-z, 0-9 and "-", and begin with a letter; ' +
        'spec.stages must have at least one stage',
      'spec.version',
    ]);
    const stages = Array.from({ length: 20 }, (_, index) => ({ ...stage, name: `S${String(index)}` }));
    const [message] = said({ name: 'a', stages });
    expect(message.match(/must be 1 to 32/g)).toHaveLength(8);
    expect(message).toMatch(/; and 12 more$/);
  });
});
