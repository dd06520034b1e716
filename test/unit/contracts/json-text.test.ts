import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { namedTwice } from '../../../src/contracts/json-text.ts';

describe('names in JSON', () => {
  it('are each there once in what was written by JSON, with any room between its parts', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom('', ' ', '\n\t'), (value, indent) => {
        expect(namedTwice(JSON.stringify(value, undefined, indent))).toBeUndefined();
      }),
    );
  });

  it.each([
    ['{"a":1,"a":2}', 'a'],
    [
      '{"stages":[{"name":"x"},{"name":"y","inputs":[1,[],{"s3":["b"],"s3" \n:\t[]}]}]}',
      'stages[1].inputs[2].s3',
    ],
    ['{"a":{"b":[[1,2],[{"c":0,"d":{},"c":0}]]}}', 'a.b[1][0].c'],
    ['[{"q\\"uote":1,"q\\u0022uote":2}]', '[0].q"uote'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
  ])('that are there twice are found with their place: %s', (text, place) => {
    expect(namedTwice(text)).toBe(place);
  });

  it('may be the same in several objects, and among values', () => {
    const text = '{"a":"a","b":["a","b",{"a":"b","b":{"a":{}}},{"a":[",","}","{\\"a\\":1"]}],"c":{"a":":"}}';
    expect(JSON.parse(text)).toBeDefined();
    expect(namedTwice(text)).toBeUndefined();
  });
});
