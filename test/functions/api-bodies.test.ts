import { describe, expect, it } from 'vitest';
import { answer, type ApiRequest } from '../../functions/api/routes.ts';
import { ScriptedSystem } from '../support/scripted-job.ts';

const spec = {
  name: 'words',
  stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'] }] }],
};
const specText = JSON.stringify({ spec });
/** A submission with this text in place of the options of its stage. */
const withOptions = (options: string): string =>
  specText.replace('"operator":"tokenize"', `"operator":"tokenize","options":${options}`);
const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

async function ask(more: Partial<ApiRequest>): Promise<{ status: number; body: Record<string, unknown> }> {
  const { statusCode, body } = await answer(new ScriptedSystem(), {
    httpMethod: 'POST',
    resource: '/jobs',
    pathParameters: null,
    queryStringParameters: null,
    body: null,
    isBase64Encoded: false,
    ...more,
  });
  return { status: statusCode, body: JSON.parse(body) as Record<string, unknown> };
}

describe('bodies that no program of ours would send', () => {
  it.each([
    ['an array 100,000 deep', deep(100_000), 400, 'nests no deeper than 64'],
    ['an array 100,000 deep that never ends', '['.repeat(100_000), 400, 'nests no deeper than 64'],
    ['options 5,000 deep', withOptions(`{"a":${deep(5_000)}}`), 400, 'nests no deeper than 64'],
    ['objects 450,000 deep', '{"":'.repeat(240_000), 400, 'nests no deeper than 64'],
    ['half a pair in a name', specText.replace('words', '\\ud800'), 400, 'surrogate'],
    ['half a pair in a key', withOptions('{"\\udfff":1}'), 400, 'surrogate'],
    ['half a pair as it is', withOptions('{"a":"\ud800"}'), 400, ''],
    ['a key named __proto__', withOptions('{"__proto__":{"a":1}}'), 400, '__proto__'],
    ['a number beyond range', withOptions('{"a":1e999}'), 400, 'range of doubles'],
    ['9.5 MB', `"${'x'.repeat(9_500_000)}"`, 413, '1000000 bytes'],
    ['9.5 MB of brackets', '['.repeat(9_500_000), 413, '1000000 bytes'],
    ['nothing', '', 400, 'must be JSON'],
    ['null', 'null', 400, ''],
    ['a number', '7', 400, ''],
    ['an empty array', '[]', 400, ''],
    ['half a document', specText.slice(0, -1), 400, 'must be JSON'],
    ['a NUL', '\0', 400, 'must be JSON'],
    ['a byte order mark', `\ufeff${specText}`, 400, 'must be JSON'],
  ])('refuses %s', async (_, body, status, part) => {
    const answered = await ask({ body });
    expect(answered.status).toBe(status);
    expect(answered.body['message']).toContain(part);
    expect(
      (
        await ask({
          body,
          httpMethod: 'PUT',
          resource: '/jobs/{id}/deadline',
          pathParameters: { id: 'words-0123456789ab' },
        })
      ).status,
    ).toBe(status);
  });

  it.each([
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]).toString('base64'), 400],
    ['text that is no base64', '!!!! not base64 !!!!', 400],
    ['9.5 MB', Buffer.alloc(9_500_000, 0x20).toString('base64'), 413],
    ['more than fits, by a byte', Buffer.alloc(1_000_001, 0x20).toString('base64'), 413],
    ['nothing', '', 400],
  ])('refuses %s in base64', async (_, body, status) => {
    expect((await ask({ body, isBase64Encoded: true })).status).toBe(status);
  });

  it('takes options as deep as the limit, brackets in strings, and doubled keys of which the last counts', async () => {
    const strings = `{"pattern":"${'['.repeat(200)}\\\\${'x'.repeat(100)}\\"["}`;
    expect(withOptions(strings)).toContain('\\\\');
    expect((await ask({ body: withOptions(strings) })).status).toBe(201);
    expect((await ask({ body: withOptions(`{"a":${deep(57)}}`) })).status).toBe(201);
    const doubled = specText.replace('"name":"words"', '"name":"WRONG","name":"words"');
    expect((await ask({ body: doubled })).status).toBe(201);
  });

  it.each([
    ['GET', '/jobs/{id}', { pathParameters: { id: '%00' } }, 404],
    ['GET', '/jobs/{id}', { pathParameters: { id: 'a'.repeat(100_000) } }, 404],
    ['GET', '/jobs/{id}', { pathParameters: { id: '\0' } }, 404],
    ['GET', '/jobs/{id}', { pathParameters: null }, 404],
    ['GET', '/jobs/{id}', { pathParameters: { id: '__proto__' } }, 404],
    ['POST', '/jobs/{id}/cancel', { pathParameters: { id: '\ud800' } }, 404],
    ['PUT', '/jobs/{id}/deadline', { pathParameters: { id: '..' }, body: '{"deadline":"1m"}' }, 404],
    ['GET', '/jobs', { queryStringParameters: { limit: '1e9' } }, 400],
    ['GET', '/jobs', { queryStringParameters: { limit: '-1' } }, 400],
    ['GET', '/jobs', { queryStringParameters: { limit: '' } }, 400],
    ['GET', '/jobs', { queryStringParameters: { limit: '1e999' } }, 400],
    ['PATCH', '/jobs', {}, 404],
    ['constructor', '', {}, 404],
    ['', '', {}, 404],
  ])('answers %s %s with a status of its own, case %#', async (httpMethod, resource, more, status) => {
    expect((await ask({ httpMethod, resource, ...more })).status).toBe(status);
  });

  const cancel = { resource: '/jobs/{id}/cancel', pathParameters: { id: 'words-0123456789ab' } };
  it.each<[string, Partial<ApiRequest>]>([
    ['text', { headers: { 'content-type': 'text/plain' } }],
    ['a form', { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }],
    ['a form in parts', { headers: { 'CONTENT-TYPE': 'multipart/form-data; boundary=x' } }],
    ['no type at all', { headers: { 'content-type': '' } }],
    ['a name that JSON begins', { headers: { 'content-type': 'application/jsonp' } }],
    ['text beside JSON', { headers: { 'content-type': 'application/json', 'Content-Type': 'text/plain' } }],
    ['text where no body is needed', { headers: { 'content-type': 'text/plain' }, ...cancel }],
    ['text in base64', { headers: { 'content-type': 'text/plain' }, isBase64Encoded: true }],
  ])('refuses a body that says it is %s, as pages may send unasked, with 415', async (_, more) => {
    const body = more.isBase64Encoded === true ? Buffer.from(specText).toString('base64') : specText;
    const answered = await ask({ body, ...more });
    expect(answered.status).toBe(415);
    expect(answered.body).toEqual({
      error: 'UnsupportedMediaType',
      message: 'body must be sent as content-type: application/json',
      field: 'body',
    });
  });

  it.each<[string, Partial<ApiRequest>]>([
    ['JSON', { headers: { 'content-type': 'application/json' } }],
    [
      'JSON in capitals, with a parameter',
      { headers: { 'CONTENT-Type': ' Application/JSON ;charset=UTF-8' } },
    ],
    ['nothing of its type', { headers: { accept: 'text/plain' } }],
    ['nothing of its type, among no headers', { headers: null }],
    ['a type that is undefined', { headers: { 'content-type': undefined } }],
  ])('takes a body that says it is %s', async (_, more) => {
    expect((await ask({ body: specText, ...more })).status).toBe(201);
  });

  it('looks at no type where there is no body', async () => {
    const headers = { 'content-type': 'text/plain' };
    expect((await ask({ httpMethod: 'GET', body: null, headers })).status).toBe(200);
    expect((await ask({ httpMethod: 'GET', body: '', headers })).status).toBe(200);
  });

  it('takes events that leave out what they may', async () => {
    const bare = { httpMethod: 'POST', resource: '/jobs' } as ApiRequest;
    const statusFor = async (event: ApiRequest): Promise<number> =>
      (await answer(new ScriptedSystem(), event)).statusCode;
    expect(await statusFor(bare)).toBe(400);
    expect(await statusFor({ ...bare, body: specText })).toBe(201);
    expect(await statusFor({ ...bare, httpMethod: 'GET' })).toBe(200);
    expect(await statusFor({ ...bare, resource: '/jobs/{id}/cancel' })).toBe(404);
    expect(await statusFor({ ...bare, httpMethod: 'GET', resource: '/jobs/{id}' })).toBe(404);
  });
});
