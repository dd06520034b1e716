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
    ['a nested unknown keyword', { properties: { a: { minLenght: 1 } } }],
    ['exclusive bounds of later drafts', { exclusiveMinimum: 1 }],
    ['a bad pattern', { pattern: '(' }],
    ['a reference to nothing', { properties: { a: { $ref: '#/definitions/none' } } }],
    ['a reference elsewhere', { $ref: 'https://example.com/schema' }],
  ])('refuses %s', (_, model) => {
    expect(() => compileModel(model)).toThrow(UnsupportedModelError);
  });

  it('ends on a schema that only refers to itself', () => {
    expect(compileModel({ $ref: '#' })('1')).toBe(false);
  });
});
