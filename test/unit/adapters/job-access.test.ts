import { beforeEach, describe, expect, it } from 'vitest';
import { readSession } from '../../../src/adapters/aws/access-item.ts';
import type { DynamoTable, Item, ItemKey } from '../../../src/adapters/aws/dynamo-table.ts';
import { sessionPolicy } from '../../../src/adapters/aws/session-policy.ts';
import { type RoleRequest, StsJobAccess } from '../../../src/adapters/aws/sts-job-access.ts';
import { grantOf } from '../../../src/app/job-grant.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import { type EpochMs, epochMs } from '../../../src/contracts/units.ts';
import type { JobGrant } from '../../../src/ports/job-access.ts';
import { evaluate } from '../../../src/local/iam/evaluate.ts';
import { readPolicy } from '../../../src/local/iam/policy.ts';

const jobId = 'words-0123456789ab' as JobId;
const grant: JobGrant = { jobId, output: { bucket: 'results', key: 'out/' }, sourceBuckets: ['texts'] };
const places = { dataBucket: 'data', partition: 'aws' };
const minute = 60_000;
const at = (minutes: number): EpochMs => epochMs(1_000_000_000_000 + minutes * minute);

describe('the policy of a session', () => {
  /** Whether it lets through what its role allows. */
  const allows = (action: string, object: string, of: JobGrant = grant): boolean => {
    const found = readPolicy(JSON.parse(sessionPolicy(of, places)));
    if ('problem' in found) throw new Error(found.problem);
    return (
      evaluate(found, { action: `s3:${action}`, resource: `arn:aws:s3:::${object}` }, new Map()) === 'allowed'
    );
  };

  it('lets a job read its sources and its own data, and nothing in other buckets', () => {
    expect(allows('GetObject', 'texts/any')).toBe(true);
    expect(allows('GetObject', `data/jobs/${jobId}/plans/1/plan.json`)).toBe(true);
    expect(allows('GetObject', `data/jobs/${jobId}1/data/x`)).toBe(false);
    expect(allows('GetObject', 'results/out/part-00000')).toBe(false);
    expect(allows('GetObject', 'secrets/any')).toBe(false);
  });

  it('leaves to the role which keys of buckets may be used', () => {
    const found = readPolicy(JSON.parse(sessionPolicy(grant, places)));
    if ('problem' in found) throw new Error(found.problem);
    const resource = 'arn:aws:kms:us-east-1:000000000000:key/a';
    for (const action of ['kms:Decrypt', 'kms:GenerateDataKey'])
      expect(evaluate(found, { action, resource }, new Map())).toBe('allowed');
  });

  it('keeps jobs out of directory buckets, but those whose data is there', () => {
    const session = (isZonal: boolean): string => {
      const found = readPolicy(JSON.parse(sessionPolicy({ ...grant, isZonal }, places)));
      if ('problem' in found) throw new Error(found.problem);
      const resource = 'arn:aws:s3express:us-east-1:000000000000:bucket/a--use1-az4--x-s3';
      return evaluate(found, { action: 's3express:CreateSession', resource }, new Map());
    };
    expect(session(false)).toBe('denied');
    expect(session(true)).toBe('allowed');
  });

  it('lets a job write its own data and below the one prefix of its output', () => {
    expect(allows('PutObject', 'results/out/part-00000')).toBe(true);
    expect(allows('PutObject', `data/jobs/${jobId}/data/map/0/0`)).toBe(true);
    for (const action of ['PutObject', 'AbortMultipartUpload', 'DeleteObject']) {
      expect(allows(action, 'results/other/part-00000')).toBe(false);
      expect(allows(action, 'texts/any')).toBe(false);
      expect(allows(action, `data/jobs/${jobId}/plans/1/plan.json`)).toBe(false);
    }
  });

  it.each(['a*b/', 'a?b/', 'a$b/', 'a${b}/', 'größe/', '日本/', '😀/', 'a"b\\/', 'a\u0001b/'])(
    'takes the prefix %j by the letter',
    (key) => {
      const odd = { ...grant, output: { bucket: 'results', key } };
      expect(sessionPolicy(odd, places)).toMatch(/^[\u0020-\u00ff]*$/);
      expect(allows('PutObject', `results/${key}part`, odd)).toBe(true);
      const near = key.replaceAll(/[*?$ö日😀"\u0001]/gu, 'xx');
      expect(allows('PutObject', `results/${near}part`, odd)).toBe(false);
    },
  );

  it('is refused rather than widened where the names do not fit', () => {
    const many = {
      ...grant,
      sourceBuckets: Array.from({ length: 50 }, (_, index) => `${'b'.repeat(50)}-${index}`),
    };
    const long = { ...grant, output: { bucket: 'results', key: `${'*'.repeat(1_000)}/` } };
    for (const of of [many, long]) {
      expect(() => sessionPolicy(of, places)).toThrow(
        /too many source buckets or too long an output prefix: .* of at most 2048/,
      );
    }
  });
});

it('a grant names each bucket of sources and code once', () => {
  const spec = jobSpecSchema.parse({
    name: 'words',
    stages: [
      {
        name: 'a',
        operator: 'grep',
        inputs: [{ s3: ['s3://texts/a', 's3://books/'] }, { s3: ['s3://texts/b'] }],
      },
      {
        name: 'b',
        code: { s3: 's3://bundles/code.mjs', sha256: '0'.repeat(64) },
        inputs: [{ stage: 'a', pattern: 'one-to-one' }],
      },
    ],
  });
  expect(grantOf({ jobId, spec, output: 's3://results/out/' })).toEqual({
    jobId,
    output: { bucket: 'results', key: 'out/' },
    sourceBuckets: ['books', 'bundles', 'texts'],
  });
});

/** As much of the table as sessions need: conditions as they are written there. */
class Items {
  readonly held = new Map<string, Item>();
  reads = 0;
  readonly table = {
    get: (key: ItemKey) => {
      this.reads += 1;
      return Promise.resolve(this.held.get(nameOf(key)));
    },
    putNew: (item: ItemKey & Item) => {
      if (this.held.has(nameOf(item))) return Promise.resolve('refused');
      this.held.set(nameOf(item), item);
      return Promise.resolve('written');
    },
    update: (key: ItemKey, { set }: { set: Item & { until: number } }) => {
      const before = this.held.get(nameOf(key));
      if (Number(before?.['until'] ?? 0) >= set.until) return Promise.resolve('refused');
      this.held.set(nameOf(key), { ...key, ...before, ...set });
      return Promise.resolve(set);
    },
  } as unknown as DynamoTable;
}
const nameOf = ({ pk, sk }: ItemKey): string => `${pk} ${sk}`;

describe('access of a job', () => {
  let items: Items;
  let asked: RoleRequest[];
  let now: EpochMs;
  let fault: Error | undefined;
  let words: number;
  let warned: string[];
  /** By how much the clock of schedulers is ahead of that of STS. */
  let aheadMs: number;

  const access = (): StsJobAccess =>
    new StsJobAccess({
      assume: (request) => {
        asked.push(request);
        if (fault !== undefined) return Promise.reject(fault);
        const number = String(asked.length);
        const keys = { accessKeyId: `id-${number}`, secretAccessKey: 'secret', sessionToken: 'token' };
        return Promise.resolve({ ...keys, until: epochMs(now - aheadMs + 60 * minute) });
      },
      table: items.table,
      ids: { token: () => String(words++).padStart(32, '0'), digest: (text) => text },
      log: { info: () => undefined, warn: (event) => void warned.push(event) },
      roleArn: 'arn:aws-cn:iam::1:role/jobs',
      dataBucket: 'data',
      aheadMs: () => aheadMs,
    });
  const named = (name: string, status?: number): Error =>
    Object.assign(new Error('why'), {
      name,
      ...(status === undefined ? {} : { $metadata: { httpStatusCode: status } }),
    });
  const keep = (of: StsJobAccess, minutes: number, job = jobId): Promise<string> => {
    now = at(minutes);
    return of.keep({ ...grant, jobId: job }, now);
  };

  beforeEach(() => {
    items = new Items();
    asked = [];
    fault = undefined;
    words = 1;
    warned = [];
    aheadMs = 0;
  });

  it('asks for one session, tagged with the job, and answers the word that leads to it', async () => {
    const one = access();
    const word = await keep(one, 0);
    expect(await keep(one, 1)).toBe(word);
    expect(asked).toMatchObject([
      {
        RoleArn: 'arn:aws-cn:iam::1:role/jobs',
        RoleSessionName: jobId,
        DurationSeconds: 3_600,
        Tags: [{ Key: 'outrider-job', Value: jobId }],
      },
    ]);
    expect(asked[0]?.Policy).toContain('arn:aws-cn:s3:::results/out/*');
    expect(await readSession(items.table, word, () => at(0))).toMatchObject({
      accessKeyId: 'id-1',
      secretAccessKey: 'secret',
      sessionToken: 'token',
    });
  });

  it('is read again by the age that it has for its reader, whose clock may be hours off', async () => {
    const word = await keep(access(), 0);
    for (const aheadMinutes of [-120, -10, 0, 10, 120])
      expect(await readSession(items.table, word, () => at(aheadMinutes))).toEqual({
        ...{ accessKeyId: 'id-1', secretAccessKey: 'secret', sessionToken: 'token' },
        expiration: new Date(at(aheadMinutes + 15)),
      });
  });

  it('renews the session under the same word while half of its hour is left', async () => {
    const one = access();
    const word = await keep(one, 0);
    await keep(one, 29);
    expect(asked).toHaveLength(1);
    expect(await keep(one, 30)).toBe(word);
    expect(asked).toHaveLength(2);
    expect((await readSession(items.table, word, () => at(0))).accessKeyId).toBe('id-2');
  });

  it.each([-120, -60, 40, 120])(
    'renews it by the time of STS, where the clock of its scheduler is ahead by %d minutes',
    async (aheadMinutes) => {
      aheadMs = aheadMinutes * minute;
      await keep(access(), 0);
      const one = access();
      for (const minutes of [1, 29, 30]) await keep(one, minutes);
      expect(asked).toHaveLength(2);
      fault = named('Throttling', 400);
      await keep(one, 71);
      await expect(keep(one, 73)).rejects.toMatchObject({ name: 'StoreUnavailable' });
    },
  );

  it('reads the session of each job once while it is fresh, of many at once, and forgets those read longest ago', async () => {
    const one = access();
    const job = (index: number): JobId => `words-${String(index).padStart(12, '0')}` as JobId;
    for (let index = 0; index < 256; index++) await keep(one, 0, job(index));
    const { reads } = items;
    for (let index = 0; index < 256; index++) await keep(one, 1, job(index));
    expect([asked.length, items.reads]).toEqual([256, reads]);
    await keep(one, 2, job(256));
    await keep(one, 2, job(255));
    expect(items.reads).toBe(reads + 2);
    await keep(one, 2, job(0));
    expect([asked.length, items.reads]).toEqual([257, reads + 3]);
  });

  it('gives the next scheduler of the job the same word, and no new session while that is fresh', async () => {
    const word = await keep(access(), 0);
    expect(await keep(access(), 13)).toBe(word);
    expect(asked).toHaveLength(1);
  });

  it('gives two schedulers at once the same word', async () => {
    now = at(0);
    const [one, two] = await Promise.all([access().keep(grant, now), access().keep(grant, now)]);
    expect(one).toBe(two);
  });

  it('goes on with the old session where none is to be had for now, as long as it outlasts an attempt', async () => {
    const one = access();
    const word = await keep(one, 0);
    fault = named('Throttling', 400);
    expect(await keep(one, 35)).toBe(word);
    expect(warned).toEqual(['session-not-renewed']);
    await expect(keep(one, 43)).rejects.toMatchObject({ name: 'StoreUnavailable' });
  });

  it.each([
    [named('Throttling', 400), 'StoreUnavailable', /no session for the job/],
    [named('ServiceUnavailable', 503), 'StoreUnavailable', /no session for the job/],
    [named('TimeoutError'), 'StoreUnavailable', /no session for the job/],
    [
      named('AccessDenied', 403),
      'JobFailed',
      /may not assume the role of jobs, arn:aws-cn:iam::1:role\/jobs: AccessDenied/,
    ],
    [named('PackedPolicyTooLargeException', 400), 'InvalidInput', /too many source buckets/],
    [named('ValidationError', 400), 'JobFailed', /ValidationError: why/],
  ])('tells %s as %s', async (cause, name, message) => {
    fault = cause;
    await expect(keep(access(), 0)).rejects.toMatchObject({
      name,
      message: expect.stringMatching(message) as unknown,
    });
  });

  it('refuses a job whose names no session can hold, and asks for none', async () => {
    const sourceBuckets = Array.from({ length: 40 }, (_, index) => `${'b'.repeat(27)}-${index}`);
    now = at(0);
    await expect(access().keep({ ...grant, sourceBuckets }, now)).rejects.toMatchObject({
      name: 'InvalidInput',
      message: expect.stringMatching(/^the job names too many source buckets/) as unknown,
    });
    expect(asked).toEqual([]);
  });

  it('tells a worker whose word leads nowhere, and nothing of the word', async () => {
    await expect(readSession(items.table, 'f'.repeat(32), () => at(0))).rejects.toMatchObject({
      name: 'NotFound',
      message: expect.not.stringContaining('fff') as unknown,
    });
  });
});
