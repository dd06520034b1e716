import fc from 'fast-check';

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** Names that objects have by themselves, or that are names of something here. */
export const oddNames = [
  'constructor',
  '__proto__',
  'prototype',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'length',
  '',
  ' ',
  'name',
  'map',
];

/** Texts that parsers, keys and logs trip over. */
export const arbText = fc.oneof(
  fc.constantFrom(
    ...oddNames,
    '\0',
    '\ud800',
    '\udfff',
    '\u2028',
    '..',
    '/',
    's3://',
    's3://data/',
    'NaN',
    '1e999',
    '-0',
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ maxLength: 20 }),
  fc.integer({ min: 100, max: 5_000 }).map((length) => 'x'.repeat(length)),
);

export const arbNumber = fc.oneof(
  fc.constantFrom(0, -0, -1, 1, 0.5, 1e21, -1e21, 2 ** 31, 2 ** 53, 2 ** 53 + 2, 1e308, 5e-324),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

/** Any JSON value, deep ones among them. */
export const arbJson: fc.Arbitrary<Json> = fc.oneof(
  { weight: 4, arbitrary: fc.oneof(arbText, arbNumber, fc.boolean(), fc.constant(null)) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json> },
  {
    weight: 1,
    arbitrary: fc.dictionary(arbText, fc.oneof(arbText, arbNumber), { maxKeys: 4 }),
  },
  { weight: 1, arbitrary: fc.integer({ min: 10, max: 200 }).map(nested) },
);

/** A list in a list in a list. */
export function nested(depth: number): Json {
  let value: Json = [];
  for (let level = 1; level < depth; level++) value = [value];
  return value;
}

/** One change of a JSON document at one of its places. */
export interface Mutation {
  /** Number of the place, modulo how many there are. */
  readonly at: number;
  readonly how: 'delete' | 'replace' | 'rename' | 'repeat' | 'wrap';
  readonly value: Json;
  readonly name: string;
}

export const arbMutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(10_000),
  how: fc.constantFrom('delete', 'replace', 'replace', 'replace', 'rename', 'repeat', 'wrap'),
  value: arbJson,
  name: fc.oneof(fc.constantFrom(...oddNames), arbText),
});

type Place =
  | { readonly parent: Json[]; readonly key: number }
  | { readonly parent: Record<string, Json>; readonly key: string };

function placesOf(value: Json, found: Place[] = []): Place[] {
  if (Array.isArray(value)) {
    for (const [key, inner] of value.entries()) {
      found.push({ parent: value, key });
      placesOf(inner, found);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      found.push({ parent: value, key });
      placesOf(inner, found);
    }
  }
  return found;
}

/** Sets a field whatever its name is: an assignment to `__proto__` would set something else. */
function setField(object: Record<string, Json>, name: string, value: Json): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function mutateOnce(document: Json, { at, how, value, name }: Mutation): Json {
  const places = placesOf(document);
  const place = places[at % Math.max(1, places.length)];
  if (place === undefined) return value;
  if (Array.isArray(place.parent)) {
    const { parent, key } = place;
    const old = parent[key as number] ?? null;
    const items = { delete: [], replace: [value], rename: [old, value], repeat: [old, old], wrap: [[old]] }[
      how
    ];
    parent.splice(key as number, 1, ...items);
    return document;
  }
  const { parent } = place;
  const key = String(place.key);
  const old = parent[key] ?? null;
  if (how === 'delete' || how === 'rename') Reflect.deleteProperty(parent, key);
  if (how === 'rename') setField(parent, name, old);
  if (how === 'replace') setField(parent, key, value);
  if (how === 'repeat') setField(parent, name, structuredClone(old));
  if (how === 'wrap') setField(parent, key, [old]);
  return document;
}

/** A document with changes made to it one after another. */
export const mutate = (document: Json, mutations: readonly Mutation[]): Json =>
  mutations.reduce(mutateOnce, structuredClone(document));
