import { describe, expect, it } from 'vitest';
import { type ReferenceScope, resolveValue } from '../../../src/local/provision/intrinsics.ts';

const scope: ReferenceScope = {
  ref: (name) =>
    new Map([
      ['Table', 'table-1'],
      ['AWS::Region', 'us-east-1'],
      ['Slots', '4'],
    ]).get(name),
  attribute: (logicalId, name) => (logicalId === 'Table' && name === 'Arn' ? 'arn:table-1' : undefined),
  exported: (name) => (name === 'Storage:Table' ? 'imported-table' : undefined),
  condition: (name) =>
    new Map([
      ['IsLarge', true],
      ['IsSmall', false],
    ]).get(name),
  availabilityZones: ['us-east-1a', 'us-east-1b'],
};

const resolve = (value: unknown): unknown => resolveValue(value, scope, 'Stack/Id (Type) Properties.P');

describe('resolveValue', () => {
  it.each([
    ['a reference to a resource', { Ref: 'Table' }, 'table-1'],
    ['a pseudo parameter', { Ref: 'AWS::Region' }, 'us-east-1'],
    ['an attribute', { 'Fn::GetAtt': ['Table', 'Arn'] }, 'arn:table-1'],
    ['an attribute with a dot', { 'Fn::GetAtt': 'Table.Arn' }, 'arn:table-1'],
    ['an import', { 'Fn::ImportValue': 'Storage:Table' }, 'imported-table'],
    [
      'an import by a computed name',
      { 'Fn::ImportValue': { 'Fn::Join': [':', ['Storage', 'Table']] } },
      'imported-table',
    ],
    ['a join', { 'Fn::Join': ['/', ['a', { Ref: 'Table' }, 3]] }, 'a/table-1/3'],
    [
      'a substitution',
      { 'Fn::Sub': '${Table}-${AWS::Region}-${Table.Arn}' },
      'table-1-us-east-1-arn:table-1',
    ],
    ['a substitution with variables', { 'Fn::Sub': ['${x}-${!y}', { x: { Ref: 'Slots' } }] }, '4-${y}'],
    ['a selection', { 'Fn::Select': [1, { 'Fn::GetAZs': '' }] }, 'us-east-1b'],
    ['a split', { 'Fn::Split': [',', 'a,b'] }, ['a', 'b']],
    ['a condition that holds', { 'Fn::If': ['IsLarge', 'yes', 'no'] }, 'yes'],
    ['a condition that does not hold', { 'Fn::If': ['IsSmall', 'yes', 'no'] }, 'no'],
    ['equality', { 'Fn::Equals': [{ Ref: 'Slots' }, '4'] }, true],
    ['negation', { 'Fn::Not': [{ Condition: 'IsSmall' }] }, true],
    ['nested values', { a: [{ b: { Ref: 'Table' } }], c: null }, { a: [{ b: 'table-1' }], c: null }],
    [
      'a value removed by NoValue',
      { a: { 'Fn::If': ['IsSmall', 1, { Ref: 'AWS::NoValue' }] }, b: 2 },
      { b: 2 },
    ],
    [
      'a condition of a policy',
      { Condition: { Bool: { x: 'true' } } },
      { Condition: { Bool: { x: 'true' } } },
    ],
  ])('resolves %s', (_, value, expected) => {
    expect(resolve(value)).toEqual(expected);
  });

  it.each([
    ['a resource', { Ref: 'Tabel' }, 'Stack/Id (Type) Properties.P: Ref to "Tabel" leads to nothing'],
    ['an attribute', { 'Fn::GetAtt': ['Table', 'Ran'] }, 'attribute "Ran" of "Table" leads to nothing'],
    ['an export', { 'Fn::ImportValue': 'Storage:Tabel' }, 'import of "Storage:Tabel" leads to nothing'],
    ['a condition', { 'Fn::If': ['IsHuge', 1, 2] }, 'condition "IsHuge" leads to nothing'],
    ['an item', { 'Fn::Select': [5, ['a']] }, 'Fn::Select of item 5 leads to nothing'],
    ['a name in a text', { 'Fn::Sub': 'x-${Tabel}' }, 'Ref to "Tabel" leads to nothing'],
  ])('refuses a reference to %s that is not there', (_, value, message) => {
    expect(() => resolve(value)).toThrow(message);
  });

  it('names the path of the property at fault', () => {
    expect(() => resolve({ a: [1, { b: { Ref: 'Tabel' } }] })).toThrow('Properties.P.a.1.b: Ref to "Tabel"');
  });

  it('refuses a function that it does not know', () => {
    expect(() => resolve({ 'Fn::Transform': {} })).toThrow('Fn::Transform is not known');
  });
});
