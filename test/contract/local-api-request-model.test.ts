import { describe, expect, it } from 'vitest';
import { UnsupportedModelError, compileModel } from '../../src/local/api/request-model.ts';

describe('compileModel', () => {
  it.each([
    ['a type', { type: 'integer' }, ['1', '-3'], ['1.5', '"1"', 'null']],
    ['several types', { type: ['string', 'null'] }, ['"a"', 'null'], ['1', '{}']],
    ['object or array', { type: 'object' }, ['{}'], ['[]', 'null', '"a"']],
    [
      'an enumeration',
      { enum: ['a', 1, null, { b: [] }] },
      ['"a"', '1', 'null', '{"b":[]}'],
      ['"b"', '2', '{}'],
    ],
    ['bounds', { minimum: 1, maximum: 3 }, ['1', '3', '"text"'], ['0', '4']],
    [
      'exclusive bounds',
      { minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: true },
      ['2'],
      ['1', '3'],
    ],
    ['multiples', { multipleOf: 0.5 }, ['1.5', '0'], ['1.2']],
    ['lengths in characters', { minLength: 1, maxLength: 2 }, ['"a"', '"💡💡"'], ['""', '"abc"']],
    ['a pattern anywhere', { pattern: 'b+' }, ['"abbc"'], ['"ac"']],
    [
      'items',
      { items: { type: 'string' }, minItems: 1, maxItems: 2, uniqueItems: true },
      ['["a"]', '["a","b"]'],
      ['[]', '[1]', '["a","a"]', '["a","b","c"]'],
    ],
    [
      'required fields, listed or not',
      { required: ['a'], properties: { b: { type: 'null' } } },
      ['{"a":1}', '{"a":1,"b":null}', '[]'],
      ['{}', '{"a":1,"b":2}'],
    ],
    [
      'no other fields',
      {
        properties: { a: {} },
        patternProperties: { '^x-': { type: 'string' } },
        additionalProperties: false,
      },
      ['{"a":1,"x-b":"c"}', '{}'],
      ['{"b":1}', '{"x-b":1}'],
    ],
    [
      'other fields of a kind',
      { additionalProperties: { type: 'integer' }, properties: { a: { type: 'string' } } },
      ['{"a":"b","c":1}'],
      ['{"c":"d"}', '{"a":1}'],
    ],
    [
      'a number of fields',
      { minProperties: 1, maxProperties: 2 },
      ['{"a":1}'],
      ['{}', '{"a":1,"b":2,"c":3}'],
    ],
    ['all of', { allOf: [{ required: ['a'] }, { required: ['b'] }] }, ['{"a":1,"b":2}'], ['{"a":1}']],
    ['any of', { anyOf: [{ type: 'string' }, { minimum: 5 }] }, ['"a"', '6'], ['4']],
    ['one of', { oneOf: [{ type: 'integer' }, { minimum: 5 }] }, ['1', '5.5'], ['6', '4.5']],
    ['none of', { not: { type: 'string' } }, ['1'], ['"a"']],
    [
      'a reference',
      { properties: { n: { $ref: '#/definitions/n' } }, definitions: { n: { maximum: 5 } } },
      ['{"n":5}', '{}'],
      ['{"n":6}'],
    ],
    [
      'itself',
      { required: ['v'], properties: { next: { $ref: '#' } } },
      ['{"v":1,"next":{"v":2}}'],
      ['{"v":1,"next":{}}'],
    ],
    [
      'a reference alone, whatever stands beside it',
      { $ref: '#/definitions/n', type: 'string', definitions: { n: { maximum: 5 } } },
      ['5', '"a"'],
      ['6'],
    ],
    ['no format', { type: 'string', format: 'date-time' }, ['"soon"'], ['1']],
    [
      'several kinds of items in turn',
      { items: [{ type: 'string' }, { type: 'integer' }] },
      ['["a",1]', '["a"]'],
      ['[1]'],
    ],
    ['what a field asks for', { dependencies: { a: ['b'] } }, ['{"b":1}', '{"a":1,"b":2}'], ['{"a":1}']],
    [
      'by the draft that it names',
      { $schema: 'http://json-schema.org/draft-04/schema#', id: 'model', title: 'A body', type: 'object' },
      ['{}'],
      ['[]'],
    ],
    [
      'fields named as in Object',
      { properties: { constructor: { type: 'string' } }, required: ['toString'] },
      ['{"toString":1}'],
      ['{}', '{"toString":1,"constructor":2}'],
    ],
    ['text that is JSON', {}, ['1', 'null', ' {} '], ['', '{', 'undefined', "{'a':1}"]],
  ])('checks %s', (_, model, allowed, refused) => {
    const isAllowed = compileModel(model);
    expect(allowed.filter((body) => !isAllowed(body))).toEqual([]);
    expect(refused.filter((body) => isAllowed(body))).toEqual([]);
  });

  it.each([
    ['an unknown keyword', { typo: 1 }],
    ['a keyword of later drafts', { const: 1 }],
    ['conditions of later drafts', { if: { type: 'string' }, then: { minLength: 1 } }],
    ['names of fields of later drafts', { propertyNames: { maxLength: 3 } }],
    ['an item among others of later drafts', { contains: { type: 'string' } }],
    ['nothing for something, as another dialect has it', { type: 'string', nullable: true }],
    ['a comment of later drafts', { $comment: 'no keyword' }],
    ['a schema of another draft', { $schema: 'http://json-schema.org/draft-07/schema#' }],
    ['no values to choose from', { enum: [] }],
    ['a nested type that there is none of', { properties: { a: { type: 'text' } } }],
    ['a nested unknown keyword', { properties: { a: { minLenght: 1 } } }],
    ['exclusive bounds of later drafts', { exclusiveMinimum: 1 }],
    ['a bad pattern', { pattern: '(' }],
    ['a reference to nothing', { properties: { a: { $ref: '#/definitions/none' } } }],
    ['a reference elsewhere', { $ref: 'https://example.com/schema' }],
  ])('refuses %s', (_, model) => {
    expect(() => compileModel(model)).toThrow(UnsupportedModelError);
  });

  it('takes the same model for each of several methods', () => {
    const model = { id: 'same', type: 'object' };
    expect([compileModel(model), compileModel(model)].map((isAllowed) => isAllowed('{}'))).toEqual([
      true,
      true,
    ]);
  });

  it('refuses a body that is nested too deeply to be looked at', () => {
    const isAllowed = compileModel({ items: { $ref: '#' } });
    expect(isAllowed('['.repeat(20) + ']'.repeat(20))).toBe(true);
    expect(isAllowed('['.repeat(1_000_000) + ']'.repeat(1_000_000))).toBe(false);
  });

  it('ends on a schema that only refers to itself', () => {
    expect(compileModel({ $ref: '#' })('1')).toBe(false);
  });

  it('keeps models of the same id apart, also after one that is none', () => {
    const id = 'http://example.org/model';
    const text = compileModel({ id, type: 'object', properties: { a: { type: 'string' } } });
    expect(() => compileModel({ id, type: 'nothing' })).toThrow(UnsupportedModelError);
    const number = compileModel({ id, type: 'object', properties: { a: { type: 'integer' } } });

    expect([text('{"a":"b"}'), text('{"a":1}')]).toEqual([true, false]);
    expect([number('{"a":"b"}'), number('{"a":1}')]).toEqual([false, true]);
  });
});
