import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { answer, routeNames } from '../../../functions/api/routes.ts';
import { openApiDocument } from '../../../src/cli/openapi.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

interface Operation {
  readonly responses: Readonly<
    Record<string, { content?: { 'application/json': { schema: { $ref: string } } } }>
  >;
  readonly requestBody?: { content: { 'application/json': { schema: { $ref: string } } } };
}

/** As a reader gets it: text. */
const document = JSON.parse(JSON.stringify(openApiDocument('0.1.0'))) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema({ $id: 'https://outrider/openapi.json', ...document });

/** What the document says of a body, by the reference that it makes. */
const problemsOf = (reference: string | undefined, body: unknown): unknown => {
  const check = ajv.getSchema(`https://outrider/openapi.json${reference ?? ''}`);
  if (check === undefined) throw new Error(`no schema ${String(reference)}`);
  return check(body) === true ? [] : check.errors;
};

const spec = {
  name: 'words',
  deadline: '10m',
  stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], format: 'text' }] }],
};

describe('the OpenAPI document', () => {
  it('is one, by a validator of other people', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
  });

  it('has the routes that the API serves, and no others', () => {
    const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(documented.toSorted()).toEqual([...routeNames].toSorted());
  });

  it('describes what the API takes and answers', async () => {
    const system = new ScriptedSystem();
    const ask = async (method: string, resource: string, id?: string, json?: unknown) => {
      const { statusCode, body } = await answer(system, {
        httpMethod: method,
        resource,
        pathParameters: id === undefined ? null : { id },
        queryStringParameters: null,
        body: json === undefined ? null : JSON.stringify(json),
        isBase64Encoded: false,
      });
      const operation = document.paths[resource]?.[method.toLowerCase()];
      const sent = operation?.requestBody?.content['application/json'].schema.$ref;
      const told = operation?.responses[String(statusCode)]?.content?.['application/json'].schema.$ref;
      const problems = {
        ...(statusCode < 300 && json !== undefined ? { sent: problemsOf(sent, json) } : {}),
        answered: problemsOf(told, JSON.parse(body)),
      };
      return { status: statusCode, problems, body: JSON.parse(body) as Record<string, unknown> };
    };
    const started = await ask('POST', '/jobs', undefined, { spec, clientToken: 'one' });
    expect(started).toMatchObject({ status: 201, problems: { sent: [], answered: [] } });
    const id = String(started.body['jobId']);
    for (const [method, resource, given, json] of [
      ['POST', '/jobs', undefined, { spec, clientToken: 'one' }],
      ['POST', '/jobs', undefined, { spec: { ...spec, deadline: 'soon' } }],
      ['POST', '/plans', undefined, { spec }],
      ['POST', '/plans', undefined, { spec, slots: [] }],
      ['GET', '/jobs', undefined, undefined],
      ['GET', '/jobs/{id}', id, undefined],
      ['GET', '/jobs/{id}', 'words-000000000000', undefined],
      ['GET', '/jobs/{id}/attempts', id, undefined],
      ['GET', '/jobs/{id}/allocations', id, undefined],
      ['PUT', '/jobs/{id}/deadline', id, { deadline: '2h' }],
      ['POST', '/jobs/{id}/cancel', id, undefined],
    ] as const) {
      const { problems } = await ask(method, resource, given, json);
      expect({ method, resource, ...problems }).toMatchObject({ method, resource, answered: [] });
    }
  });

  it('refuses what the API refuses: a spec without stages, a field that is none', () => {
    const submit = '#/components/schemas/SubmitRequest';
    expect(problemsOf(submit, { spec })).toEqual([]);
    expect(problemsOf(submit, { spec: { ...spec, stages: [] } })).not.toEqual([]);
    expect(problemsOf(submit, { spec: { ...spec, stage: 1 } })).not.toEqual([]);
    expect(problemsOf(submit, { spec, token: 'one' })).not.toEqual([]);
  });
});
