import { beforeEach, describe, expect, it } from 'vitest';
import { answer, type ApiRequest } from '../../functions/api/routes.ts';
import {
  AccessDeniedError,
  InvalidInputError,
  StoreRefusedError,
  StoreUnavailableError,
  UnreadableRecordError,
} from '../../src/contracts/errors.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import { epochMs } from '../../src/contracts/units.ts';
import { ScriptedSystem } from '../support/scripted-job.ts';

const spec = {
  name: 'words',
  stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'] }] }],
};

let system: ScriptedSystem;

beforeEach(() => {
  system = new ScriptedSystem();
});

/** The system with some of its parts replaced. */
const systemWith = (parts: object): ScriptedSystem =>
  Object.assign(Object.create(system) as ScriptedSystem, parts);

async function ask(
  httpMethod: string,
  resource: string,
  more: Partial<ApiRequest> & { id?: string; json?: unknown } = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const { id, json, ...rest } = more;
  const { statusCode, body } = await answer(system, {
    httpMethod,
    resource,
    pathParameters: id === undefined ? null : { id },
    queryStringParameters: null,
    body: json === undefined ? null : JSON.stringify(json),
    isBase64Encoded: false,
    ...rest,
  });
  return { status: statusCode, body: JSON.parse(body) as Record<string, unknown> };
}

async function submitted(): Promise<string> {
  const { body } = await ask('POST', '/jobs', { json: { spec, clientToken: 'one' } });
  return body['jobId'] as string;
}

describe('the API', () => {
  it('answers 201 to the first submission and 200 to its repetition', async () => {
    const first = await ask('POST', '/jobs', { json: { spec, clientToken: 'one' } });
    expect(first).toMatchObject({ status: 201, body: { started: true } });
    const again = await ask('POST', '/jobs', { json: { spec, clientToken: 'one' } });
    expect(again).toEqual({ status: 200, body: { jobId: first.body['jobId'], started: false } });
  });

  it('answers 400 with the field to a bad spec, also in base64, and starts nothing', async () => {
    const bad = { spec: { ...spec, deadline: 'soon' } };
    const body = Buffer.from(JSON.stringify(bad)).toString('base64');
    expect(await ask('POST', '/jobs', { body, isBase64Encoded: true })).toMatchObject({
      status: 400,
      body: {
        error: 'InvalidInput',
        field: 'spec.deadline',
        message: expect.stringMatching(/1s to 7d/) as string,
      },
    });
    expect(await ask('POST', '/jobs', { body: '{' })).toMatchObject({ status: 400, body: { field: 'body' } });
    expect((await ask('GET', '/jobs')).body['jobs']).toEqual([]);
  });

  it.each([
    ['spec.output', 'x'.repeat(1_000), 1_000],
    ['spec.output', 'é'.repeat(500), 1_000],
    ['spec.stages[0].inputs[0].s3[0]', '€'.repeat(342), 1_024],
  ])('refuses keys in %s that S3 would refuse once the job runs, case %#', async (field, key, most) => {
    const uri = `s3://books/${key}`;
    const wrong =
      field === 'spec.output'
        ? { ...spec, output: `${uri}/` }
        : { ...spec, stages: [{ ...spec.stages[0], inputs: [{ s3: [uri] }] }] };
    expect(await ask('POST', '/jobs', { json: { spec: wrong } })).toMatchObject({
      status: 400,
      body: { error: 'InvalidInput', field, message: expect.stringContaining(`${most} bytes`) as unknown },
    });
    const right = { ...spec, output: `s3://books/${'é'.repeat(499)}x/` };
    expect(await ask('POST', '/jobs', { json: { spec: right } })).toMatchObject({
      status: 201,
    });
  });

  it('names the option of an operator that refuses it', async () => {
    const deps = systemWith({
      checkOperator: () => {
        throw new InvalidInputError('the pattern must be text', { field: 'options.pattern' });
      },
    });
    const request = {
      httpMethod: 'POST',
      resource: '/jobs',
      pathParameters: null,
      queryStringParameters: null,
    };
    const { body } = await answer(deps, {
      ...request,
      body: JSON.stringify({ spec }),
      isBase64Encoded: false,
    });
    expect(JSON.parse(body)).toMatchObject({ field: 'spec.stages[0].options.pattern' });
  });

  it('answers 404 to a job that is not there and to text that is no job id', async () => {
    for (const id of ['words-000000000000', '../etc', '']) {
      expect(await ask('GET', '/jobs/{id}', { id })).toMatchObject({
        status: 404,
        body: { error: 'NotFound' },
      });
    }
  });

  it('shows a job, its attempts, and lists it', async () => {
    const id = await submitted();
    expect(await ask('GET', '/jobs/{id}', { id })).toMatchObject({
      status: 200,
      body: { jobId: id, state: 'submitted' },
    });
    expect(await ask('GET', '/jobs/{id}/attempts', { id })).toEqual({ status: 200, body: { attempts: [] } });
    const list = await ask('GET', '/jobs', { queryStringParameters: { limit: '1' } });
    expect((list.body['jobs'] as JobRecord[]).map(({ jobId }) => jobId)).toEqual([id]);
    expect(await ask('GET', '/jobs', { queryStringParameters: { limit: '0' } })).toMatchObject({
      status: 400,
      body: { field: 'limit' },
    });
  });

  it('records a cancellation once, and refuses it after the end with 409', async () => {
    const id = await submitted();
    const at = (await ask('POST', '/jobs/{id}/cancel', { id })).body['cancelRequestedAt'];
    await system.clock.advance(1_000);
    expect((await ask('POST', '/jobs/{id}/cancel', { id })).body['cancelRequestedAt']).toBe(at);
    await system.jobs.update(id as JobRecord['jobId'], ['submitted'], { state: 'cancelled' });
    expect(await ask('POST', '/jobs/{id}/cancel', { id })).toMatchObject({ status: 409 });
  });

  it('sets a deadline counted from now', async () => {
    const id = await submitted();
    const now = system.clock.now();
    const changed = await ask('PUT', '/jobs/{id}/deadline', { id, json: { deadline: '2m' } });
    expect(changed).toMatchObject({ status: 200, body: { deadlineAt: now + 120_000 } });
    expect((await ask('GET', '/jobs/{id}', { id })).body['deadlineAt']).toBe(now + 120_000);
    expect(await ask('PUT', '/jobs/{id}/deadline', { id, json: { deadline: '8d' } })).toMatchObject({
      status: 400,
    });
  });

  it('sets a deadline at an instant, again to the same effect, and takes it away, again too', async () => {
    const id = await submitted();
    const put = (deadline: unknown) => ask('PUT', '/jobs/{id}/deadline', { id, json: { deadline } });
    const at = system.clock.now() + 3_600_000;
    const instant = new Date(at).toISOString();
    for (let times = 0; times < 2; times++)
      expect(await put(instant)).toMatchObject({ status: 200, body: { deadlineAt: at } });
    await system.clock.advance(3_600_001);
    // Over by now, but it is the job's deadline already: whoever repeats himself is told so.
    expect(await put(instant)).toMatchObject({ status: 200, body: { deadlineAt: at } });
    for (let times = 0; times < 2; times++) {
      const without = await put('none');
      expect([without.status, without.body['deadlineAt']]).toEqual([200, undefined]);
      expect((await ask('GET', '/jobs/{id}', { id })).body).not.toHaveProperty('deadlineAt');
    }
  });

  it('tells what a job has asked for, each change once, in order, and of no job nothing', async () => {
    const id = (await submitted()) as JobRecord['jobId'];
    const nothing = await ask('GET', '/jobs/{id}/allocations', { id });
    expect(nothing).toEqual({ status: 200, body: { allocations: [] } });
    const allocate = (slots: number, reason = 'adjusted') => ({
      ...{ kind: 'allocate', slots, smoothed: slots - 0.5, reason, facts: { raw: slots } },
    });
    const entries = [
      [allocate(3, 'admitted')],
      [{ kind: 'open-stage', stage: 0 }, allocate(5)],
      // A scheduler that took the job over has repeated the entry.
      [{ kind: 'open-stage', stage: 0 }, allocate(5)],
      [allocate(2)],
    ];
    for (const [place, decisions] of entries.entries()) {
      const version = place + 1;
      await system.decisions.append(id, { version, epoch: 1, at: epochMs(1_000 * version), decisions });
    }
    const told = await ask('GET', '/jobs/{id}/allocations', { id });
    expect(told.body['allocations']).toEqual([
      { at: 1_000, slots: 3, smoothed: 2.5, reason: 'admitted', facts: { raw: 3 } },
      { at: 2_000, slots: 5, smoothed: 4.5, reason: 'adjusted', facts: { raw: 5 } },
      { at: 4_000, slots: 2, smoothed: 1.5, reason: 'adjusted', facts: { raw: 2 } },
    ]);
    expect(await ask('GET', '/jobs/{id}/allocations', { id: 'words-000000000000' })).toMatchObject({
      status: 404,
    });
  });

  it.each([
    ['soon', /must be a length of time .*or "none"$/],
    ['', /must be a length of time/],
    ['0s', /must be a length of time/],
    ['8d', /must be a length of time/],
    [null, /must be a text, not null/],
    [60, /must be a text, not a number/],
    ['2001-01-01', /must be a length of time/],
    ['2001-01-01T00:00:00Z', /must be from 1s to 7d from now/],
    ['2999-01-01T00:00:00Z', /must be from 1s to 7d from now/],
  ])('refuses the deadline %j and names the field', async (deadline, message) => {
    const id = await submitted();
    expect(await ask('PUT', '/jobs/{id}/deadline', { id, json: { deadline } })).toMatchObject({
      status: 400,
      body: { field: 'deadline', message: expect.stringMatching(message) as unknown },
    });
    expect((await ask('GET', '/jobs/{id}', { id })).body).not.toHaveProperty('deadlineAt');
  });

  it.each(['2m', 'none'])('answers 409 to the deadline %s of a job that has ended', async (deadline) => {
    const id = await submitted();
    await system.jobs.update(id as JobRecord['jobId'], ['submitted'], { state: 'succeeded' });
    const asked = await ask('PUT', '/jobs/{id}/deadline', { id, json: { deadline } });
    expect(asked).toMatchObject({ status: 409, body: { error: 'Conflict' } });
    const unknown = { id: 'words-000000000000', json: { deadline } };
    expect(await ask('PUT', '/jobs/{id}/deadline', unknown)).toMatchObject({ status: 404 });
  });

  it.each([
    [new AccessDeniedError('access denied: dynamodb:GetItem on table jobs'), 502, 'AccessDenied'],
    [new StoreRefusedError('write was refused by S3 for s3://b/k: InvalidRequest: why'), 502, 'StoreRefused'],
    [new UnreadableRecordError('the record JOB#x/META of a job cannot be read'), 409, 'UnreadableRecord'],
  ])('answers %s by what it is', async (error, status, name) => {
    const load = (): Promise<never> => Promise.reject(error);
    const jobs = Object.assign(Object.create(system.jobs) as object, { load });
    for (const [httpMethod, resource] of [
      ['GET', '/jobs/{id}'],
      ['GET', '/jobs/{id}/attempts'],
      ['POST', '/jobs/{id}/cancel'],
    ] as const) {
      const { statusCode, body } = await answer(systemWith({ jobs }), {
        httpMethod,
        resource,
        pathParameters: { id: 'words-0123456789ab' },
        queryStringParameters: null,
        body: null,
        isBase64Encoded: false,
      });
      expect(statusCode).toBe(status);
      expect(JSON.parse(body)).toMatchObject({
        error: name,
        message: expect.stringContaining(error.message) as unknown,
      });
    }
  });

  it('refuses a spec with a key that a schema would leave out without a word', async () => {
    const text = JSON.stringify({
      spec: { ...spec, stages: [{ ...spec.stages[0], options: { env: { a: 1 } } }] },
    });
    const body = text.replace('"a":1', '"__proto__":"x"');
    expect(await ask('POST', '/jobs', { body })).toEqual({
      status: 400,
      body: {
        error: 'InvalidInput',
        field: 'spec.stages[0].options.env.__proto__',
        message: 'spec.stages[0].options.env.__proto__ must have another name',
      },
    });
  });

  it('knows no route by a name that objects have inherited', async () => {
    for (const resource of ['constructor', '__proto__', 'toString'])
      expect((await ask('GET', resource)).status).toBe(404);
    expect((await ask('', '')).status).toBe(404);
  });

  it('answers 503 while a store is away, and 500 without a word of what broke for anything else', async () => {
    const broken = (error: Error): ScriptedSystem =>
      systemWith({
        jobs: Object.assign(Object.create(system.jobs) as object, { list: () => Promise.reject(error) }),
      });
    const request = {
      httpMethod: 'GET',
      resource: '/jobs',
      pathParameters: null,
      queryStringParameters: null,
      body: null,
      isBase64Encoded: false,
    };
    expect((await answer(broken(new StoreUnavailableError('read failed')), request)).statusCode).toBe(503);
    const secret = await answer(broken(new TypeError('secret')), request);
    expect(secret.statusCode).toBe(500);
    expect(secret.body).not.toContain('secret');
  });
});
