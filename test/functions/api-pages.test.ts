import { describe, expect, it } from 'vitest';
import { answer, type ApiAnswer } from '../../functions/api/routes.ts';
import { submitJob } from '../../src/app/submit-job.ts';
import { attemptIdOf, type JobId } from '../../src/contracts/ids.ts';
import { progress, ScriptedSystem } from '../support/scripted-job.ts';

/** What Lambda gives at most: the answer as a document, with the body as a text in it. */
const lambdaBytes = 6 * 1024 * 1024;
const bytesOf = (answered: ApiAnswer): number => Buffer.byteLength(JSON.stringify(answered));

const spec = (filler = '') => ({
  name: 'words',
  stages: [
    {
      name: 'map',
      operator: 'tokenize' as const,
      inputs: [{ s3: ['s3://data/in/', `s3://data/${filler}/`] }],
    },
  ],
});

const ask = (
  system: ScriptedSystem,
  resource: string,
  id: string | undefined,
  query: Record<string, string>,
) =>
  answer(system, {
    httpMethod: 'GET',
    resource,
    pathParameters: id === undefined ? null : { id },
    queryStringParameters: query,
    body: null,
    isBase64Encoded: false,
  });

type Page = { attempts: { attemptId: string }[]; jobs: { jobId: string }[]; cursor?: string };

/** All pages, each of which fits. */
async function pages(
  system: ScriptedSystem,
  resource: string,
  id?: string,
  query: Record<string, string> = {},
): Promise<Page[]> {
  const found: Page[] = [];
  let cursor: string | undefined;
  do {
    const answered = await ask(system, resource, id, {
      ...query,
      ...(cursor === undefined ? {} : { cursor }),
    });
    expect(answered.statusCode).toBe(200);
    expect(bytesOf(answered)).toBeLessThan(lambdaBytes);
    const page = JSON.parse(answered.body) as Page;
    found.push(page);
    cursor = page.cursor;
  } while (cursor !== undefined && found.length < 100);
  return found;
}

/** A job with attempts that failed with messages of which every character is escaped. */
async function failing(tasks: number): Promise<{ system: ScriptedSystem; jobId: JobId }> {
  const system = new ScriptedSystem();
  const { jobId } = await submitJob(system, { spec: spec() });
  await system.jobs.update(jobId, ['submitted'], { state: 'running', shards: 1 });
  const space = { jobId, shards: 1 };
  const failure = { cause: 'user-code' as const, message: '"'.repeat(1_000) };
  for (let task = 0; task < tasks; task++) {
    // Several at one time, so that places are told apart by more than that.
    if (task % 7 === 0) await system.clock.advance(1);
    const id = attemptIdOf('map', task, 0);
    const now = system.clock.now();
    await system.attempts.create(space, id, now);
    await system.attempts.claim(space, id, { node: 'n', zone: 'z' }, now);
    await system.attempts.end(space, id, { state: 'failed', progress: progress(1), failure }, now);
  }
  return { system, jobId };
}

describe('lists of the API', () => {
  it('give 4,000 attempts of 4 MB and more in pages that Lambda lets through, each once and by launch', async () => {
    const { system, jobId } = await failing(4_000);
    const found = await pages(system, '/jobs/{id}/attempts', jobId);
    expect(found.length).toBeGreaterThan(2);
    const ids = found.flatMap(({ attempts }) => attempts.map(({ attemptId }) => attemptId));
    expect(ids).toHaveLength(4_000);
    expect(new Set(ids).size).toBe(4_000);
    const again = await pages(system, '/jobs/{id}/attempts', jobId);
    expect(again.flatMap(({ attempts }) => attempts.map(({ attemptId }) => attemptId))).toEqual(ids);
  });

  it('give as many attempts as are asked for', async () => {
    const { system, jobId } = await failing(25);
    const found = await pages(system, '/jobs/{id}/attempts', jobId, { limit: '10' });
    expect(found.map(({ attempts }) => attempts.length)).toEqual([10, 10, 5]);
    const all = await pages(system, '/jobs/{id}/attempts', jobId);
    expect(all).toHaveLength(1);
    expect(found.flatMap(({ attempts }) => attempts)).toEqual(all[0]?.attempts);
  });

  it.each([
    [{ limit: '0' }, 'limit must be a whole number from 1 to 10000'],
    [{ limit: '1e3' }, 'limit must be a whole number from 1 to 10000'],
    [{ limit: '10001' }, 'limit must be a whole number from 1 to 10000'],
    [{ cursor: 'x' }, 'cursor must be one that an earlier list gave'],
    [{ cursor: '12~' }, 'cursor must be one that an earlier list gave'],
  ])('refuse %j of attempts by the name of the parameter', async (query, message) => {
    const { system, jobId } = await failing(1);
    const answered = await ask(system, '/jobs/{id}/attempts', jobId, query);
    expect(answered.statusCode).toBe(400);
    expect(JSON.parse(answered.body)).toEqual({
      error: 'InvalidInput',
      message,
      field: Object.keys(query)[0],
    });
  });

  it('give 60 jobs of long specs in pages that Lambda lets through, newest first', async () => {
    const system = new ScriptedSystem();
    const submitted: JobId[] = [];
    const long = {
      ...spec(),
      stages: [
        {
          ...spec().stages[0],
          inputs: [
            { s3: Array.from({ length: 180 }, (_, at) => `s3://data/${String(at)}${'x'.repeat(1_000)}/`) },
          ],
        },
      ],
    };
    for (let job = 0; job < 60; job++) {
      await system.clock.advance(1);
      submitted.push((await submitJob(system, { spec: long })).jobId);
    }
    const found = await pages(system, '/jobs', undefined, { limit: '100' });
    expect(found.length).toBeGreaterThan(1);
    expect(found.flatMap(({ jobs }) => jobs.map(({ jobId }) => jobId))).toEqual(submitted.toReversed());
  });
});
