import fc from 'fast-check';
import { answer, type ApiRequest } from '../../functions/api/routes.ts';
import { arbJson, arbText, type Json } from './arbitraries.ts';
import { type Fuzzer, hold } from './fuzzer.ts';
import { easySystem, putSources } from './spec-fuzzer.ts';
import { arbSpec } from './specs.ts';

const routes: readonly (readonly [method: string, resource: string])[] = [
  ['POST', '/jobs'],
  ['GET', '/jobs'],
  ['GET', '/jobs/{id}'],
  ['GET', '/jobs/{id}/attempts'],
  ['POST', '/jobs/{id}/cancel'],
  ['PUT', '/jobs/{id}/deadline'],
  ['PATCH', '/jobs'],
  ['constructor', '__proto__'],
];

const deep = (open: string, close: string) =>
  fc.integer({ min: 1, max: 100_000 }).map((depth) => open.repeat(depth) + close.repeat(depth));

/** A spec that is right but for a text in its midst, which may be too deep, too long or no text at all. */
const specAround = (inner: string): string =>
  `{"spec":{"name":"deep","stages":[{"name":"one","operator":"exec","options":{"command":["cat"],"env":${inner}},"inputs":[{"s3":["s3://data/in/"]}]}]}}`;

/** Bodies that are JSON and that are not: deep, long, cut, with lone surrogates, with a name twice. */
export const arbBody: fc.Arbitrary<string> = fc.oneof(
  fc.record({ spec: arbSpec, clientToken: arbJson }).map((body) => JSON.stringify(body)),
  arbJson.map((value) => JSON.stringify(value)),
  fc.tuple(arbSpec, fc.double({ min: 0, max: 1 })).map(([spec, share]) => {
    const text = JSON.stringify({ spec });
    return text.slice(0, Math.floor(text.length * share));
  }),
  arbText,
  deep('[', ']'),
  deep('{"spec":', '}'),
  deep('[', ''),
  fc
    .oneof(
      deep('[', ']'),
      deep('{"a":', '}').map((text) => text.replace(':}', ':1}')),
    )
    .map(specAround),
  arbText.map((text) => specAround(JSON.stringify({ A: text }))),
  fc.constantFrom('{"A":"\\ud800"}', '{"A":"\\u0000"}').map(specAround),
  fc.integer({ min: 100_000, max: 9_500_000 }).map((length) => specAround(`{"A":"${'x'.repeat(length)}"}`)),
  fc.record({ deadline: arbJson }).map((body) => JSON.stringify(body)),
  fc
    .integer({ min: 1_000, max: 300_000 })
    .map((length) => JSON.stringify({ spec: { name: 'a'.repeat(length) } })),
  fc.constantFrom('{"spec":{},"spec":{}}', '{"__proto__":{"spec":1}}', '"\\ud800"', '\ufeff{}', ' ', '1e999'),
);

const arbId = fc.oneof(
  arbText,
  fc.constantFrom('words-000000000000', 'words-0123456789ab', '%', '%00', '..'),
);
const arbQuery = fc.dictionary(
  fc.oneof(fc.constantFrom('limit', 'cursor'), arbText),
  fc.oneof(
    arbText,
    fc.constantFrom(
      '1',
      '100',
      '0',
      '1e2',
      'NaN',
      'Infinity',
      'e30',
      Buffer.from('{}').toString('base64url'),
    ),
  ),
  { maxKeys: 3 },
);

const arbRequest: fc.Arbitrary<ApiRequest> = fc
  .record({
    route: fc.constantFrom(...routes),
    id: arbId,
    query: fc.option(arbQuery),
    body: fc.option(arbBody),
    isBase64Encoded: fc.boolean(),
  })
  .map(({ route: [httpMethod, resource], id, query, body, isBase64Encoded }) => ({
    httpMethod,
    resource,
    pathParameters: { id },
    queryStringParameters: query,
    body: isBase64Encoded && body !== null ? Buffer.from(body).toString('base64') : body,
    isBase64Encoded,
  }));

const isOdd = (text: string): boolean => {
  const told = JSON.parse(text) as Json;
  return (
    typeof told !== 'object' || told === null || Array.isArray(told) || typeof told['message'] !== 'string'
  );
};

/** Requests of every kind to the API's handler. */
export function bodyFuzzer(): Fuzzer {
  return {
    name: 'bodies',
    what: 'requests to the API are answered, and never with a 5xx',
    runs: 400,
    property: fc.asyncProperty(fc.array(arbRequest, { minLength: 1, maxLength: 4 }), async (requests) => {
      const system = easySystem();
      await putSources(system);
      for (const request of requests) {
        const { statusCode, body } = await answer(system, request);
        hold(statusCode >= 200 && statusCode < 500, 'a request is answered', [
          statusCode,
          system.logged,
          body,
        ]);
        hold(statusCode < 300 || !isOdd(body), 'a refusal says why', body);
      }
    }),
  };
}
