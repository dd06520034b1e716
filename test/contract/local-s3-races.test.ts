import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compareUtf8 } from '../../src/lib/compare-utf8.ts';
import { KeyIndex } from '../../src/local/s3/key-index.ts';
import { BUCKET, outcome, startBench } from './local-s3-support.ts';
import type { S3Bench } from './local-s3-support.ts';

let bench: S3Bench;
let second: S3Client;

beforeAll(async () => {
  bench = await startBench();
  second = (await bench.another()).client;
});
afterAll(async () => {
  await bench.close();
});

const RACERS = Array.from({ length: 20 }, (_, at) => at);
const ONE_WINNER = ['412 PreconditionFailed', 'ok'].flatMap((word, at) =>
  Array.from({ length: at === 0 ? 19 : 1 }, () => word),
);

/** Half of the racers go to a second server on the same directory. */
const clientOfRacer = (racer: number): S3Client => (racer % 2 === 0 ? bench.client : second);

async function winnerIs(key: string, outcomes: readonly string[]): Promise<void> {
  expect(outcomes.toSorted()).toEqual(ONE_WINNER);
  const got = await bench.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }));
  expect(await got.Body?.transformToString()).toBe(`racer ${String(outcomes.indexOf('ok'))}`);
}

describe('of 20 racers for one key', () => {
  it.each([1, 2, 3, 4, 5])('exactly one PutObject wins, round %i', async (round) => {
    const key = `put-${String(round)}`;
    const put = (racer: number): Promise<string> =>
      outcome(
        clientOfRacer(racer).send(
          new PutObjectCommand({
            Bucket: BUCKET,
            Key: key,
            Body: `racer ${String(racer)}`,
            IfNoneMatch: '*',
          }),
        ),
      );
    await winnerIs(key, await Promise.all(RACERS.map(put)));
  });

  it('exactly one CompleteMultipartUpload wins', async () => {
    const Key = 'complete';
    const prepare = async (racer: number): Promise<CompleteMultipartUploadCommand> => {
      const { UploadId } = await bench.client.send(new CreateMultipartUploadCommand({ Bucket: BUCKET, Key }));
      const part = { Bucket: BUCKET, Key, UploadId, PartNumber: 1 };
      const { ETag } = await bench.client.send(
        new UploadPartCommand({ ...part, Body: `racer ${String(racer)}` }),
      );
      return new CompleteMultipartUploadCommand({
        Bucket: BUCKET,
        Key,
        UploadId,
        IfNoneMatch: '*',
        MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] },
      });
    };
    const commands = await Promise.all(RACERS.map(prepare));
    const outcomes = commands.map((command, racer) => outcome(clientOfRacer(racer).send(command)));
    await winnerIs(Key, await Promise.all(outcomes));
  });

  it('exactly one replacement by If-Match wins on one server', async () => {
    const { ETag } = await bench.client.send(
      new PutObjectCommand({ Bucket: BUCKET, Key: 'swap', Body: 'start' }),
    );
    const swap = (racer: number): Promise<string> =>
      outcome(
        bench.client.send(
          new PutObjectCommand({
            Bucket: BUCKET,
            Key: 'swap',
            Body: `racer ${String(racer)}`,
            IfMatch: ETag,
          }),
        ),
      );
    await winnerIs('swap', await Promise.all(RACERS.map(swap)));
  });
});

const KEYS = ['a', 'a/b', 'a/b/c', 'a0', 'é', '\uff5e', '\u{1f980}', '../a'];
const VALUES = ['', 'x', 'yy'];

type Step =
  | {
      readonly kind: 'put';
      readonly key: string;
      readonly value: string;
      readonly when: 'always' | 'absent' | 'same';
    }
  | { readonly kind: 'get' | 'delete'; readonly key: string }
  | { readonly kind: 'list'; readonly prefix: string; readonly after: string; readonly delimiter: string };

const arbKey = fc.constantFrom(...KEYS);
const arbStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('put' as const),
    key: arbKey,
    value: fc.constantFrom(...VALUES),
    when: fc.constantFrom('always' as const, 'absent' as const, 'same' as const),
  }),
  fc.record({ kind: fc.constantFrom('get' as const, 'delete' as const), key: arbKey }),
  fc.record({
    kind: fc.constant('list' as const),
    prefix: fc.constantFrom('', 'a', 'a/', '\uff5e'),
    after: fc.constantFrom('', ...KEYS),
    delimiter: fc.constantFrom('', '/'),
  }),
);

/** Listing by the book: every key past the start, sorted as bytes, folded one by one. */
function oracleList(keys: Iterable<string>, prefix: string, after: string, delimiter: string): string[] {
  const names = new Set<string>();
  const sorted = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  for (const key of sorted) {
    if (!key.startsWith(prefix) || Buffer.compare(Buffer.from(key), Buffer.from(after)) <= 0) continue;
    const at = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    names.add(at < 0 ? key : key.slice(0, at + 1));
  }
  return [...names];
}

const ETAGS: Readonly<Record<string, string>> = {
  '': '"d41d8cd98f00b204e9800998ecf8427e"',
  x: '"9dd4e461268c8034f5c8564e155c67a6"',
  yy: '"2fb1c5cf58867b5bbc9a1b145a86f3a0"',
};

describe('any sequence of requests', () => {
  it('answers like a map', async () => {
    let run = 0;
    const check = fc.asyncProperty(fc.array(arbStep, { minLength: 1, maxLength: 25 }), async (steps) => {
      run += 1;
      const bucket = `run-${String(run)}`;
      await bench.server.createBucket(bucket);
      const model = new Map<string, string>();
      for (const step of steps) await applyStep(bucket, model, step);
    });
    await fc.assert(check, { numRuns: 40, seed: 20260301 });
  }, 60_000);

  async function applyStep(bucket: string, model: Map<string, string>, step: Step): Promise<void> {
    const send = bench.client;
    switch (step.kind) {
      case 'put': {
        const present = model.get(step.key);
        const condition =
          step.when === 'absent'
            ? { IfNoneMatch: '*' }
            : step.when === 'same'
              ? { IfMatch: ETAGS[step.value] }
              : {};
        let expected = 'ok';
        if (step.when === 'absent' && present !== undefined) expected = '412 PreconditionFailed';
        if (step.when === 'same' && present === undefined) expected = '404 NoSuchKey';
        if (step.when === 'same' && present !== undefined && present !== step.value)
          expected = '412 PreconditionFailed';
        const put = new PutObjectCommand({
          Bucket: bucket,
          Key: step.key,
          Body: Buffer.from(step.value),
          ...condition,
        });
        expect(await outcome(send.send(put))).toBe(expected);
        if (expected === 'ok') model.set(step.key, step.value);
        return;
      }
      case 'get': {
        const call = send.send(new GetObjectCommand({ Bucket: bucket, Key: step.key }));
        const present = model.get(step.key);
        if (present === undefined) expect(await outcome(call)).toBe('404 NoSuchKey');
        else expect(await (await call).Body?.transformToString()).toBe(present);
        return;
      }
      case 'delete':
        await send.send(new DeleteObjectCommand({ Bucket: bucket, Key: step.key }));
        model.delete(step.key);
        return;
      case 'list': {
        const { prefix, after, delimiter } = step;
        const page = await send.send(
          new ListObjectsV2Command({
            Bucket: bucket,
            Prefix: prefix,
            ...(after === '' ? {} : { StartAfter: after }),
            ...(delimiter === '' ? {} : { Delimiter: delimiter }),
          }),
        );
        const names = [
          ...(page.Contents ?? []).map((o) => o.Key),
          ...(page.CommonPrefixes ?? []).map((p) => p.Prefix),
        ];
        expect(new Set(names)).toEqual(new Set(oracleList(model.keys(), prefix, after, delimiter)));
      }
    }
  }
});

describe('the key index', () => {
  it('orders any strings as their bytes', () => {
    const arbText = fc.string({ unit: 'grapheme' });
    fc.assert(
      fc.property(arbText, arbText, (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });

  it('pages through 50,000 keys, each once', () => {
    const index = new KeyIndex();
    const summary = { etag: '', sizeBytes: 0, lastModifiedMs: 0 };
    for (let at = 0; at < 50_000; at++)
      index.set(`k/${String((at * 7919) % 50_000).padStart(5, '0')}`, summary);
    const seen: string[] = [];
    let after = '';
    for (let page = 0; page < 51; page++) {
      const { entries, next } = index.list({ prefix: 'k/', delimiter: '', after, maxKeys: 1000 });
      for (const entry of entries) if (entry.kind === 'object') seen.push(entry.key);
      if (next === undefined) break;
      after = next;
    }
    expect(seen).toEqual(Array.from({ length: 50_000 }, (_, at) => `k/${String(at).padStart(5, '0')}`));
  });
});
