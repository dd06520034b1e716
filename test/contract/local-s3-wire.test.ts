import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  BUCKET,
  bytes,
  CREDENTIALS,
  MIB,
  outcome,
  presignedUrl,
  REGION,
  sendRaw,
  startBench,
} from './local-s3-support.ts';
import type { S3Bench } from './local-s3-support.ts';

let bench: S3Bench;

beforeAll(async () => {
  bench = await startBench();
});
afterAll(async () => {
  await bench.close();
});

const TRAILER = {
  'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
  'content-encoding': 'aws-chunked',
  'x-amz-trailer': 'x-amz-checksum-crc32',
};

function putRaw(path: string, headers: Record<string, string>, body: string): Promise<Response> {
  return sendRaw(bench.server, { method: 'PUT', path, headers, body });
}

async function codeOf(answer: Response): Promise<string> {
  return `${String(answer.status)} ${/<Code>(.*?)<\/Code>/.exec(await answer.text())?.[1] ?? ''}`;
}

async function read(key: string): Promise<string> {
  const got = await bench.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }));
  return (await got.Body?.transformToString()) ?? '';
}

describe('aws-chunked bodies', () => {
  it('are stored without their framing', async () => {
    const headers = { ...TRAILER, 'x-amz-decoded-content-length': '9' };
    const body = '4\r\n1234\r\n5\r\n56789\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n';
    const answer = await putRaw('/data/framed', headers, body);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-amz-checksum-crc32')).toBe('y/Q5Jg==');
    const got = await bench.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'framed' }));
    expect(await got.Body?.transformToString()).toBe('123456789');
    expect(got.ContentEncoding).toBeUndefined();
  });

  it.each([
    [
      'a wrong trailing checksum',
      '9',
      '9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n',
      '400 BadDigest',
    ],
    ['a trailer left out', '9', '9\r\n123456789\r\n0\r\n\r\n', '400 MalformedTrailerError'],
    [
      'another length',
      '8',
      '9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n',
      '400 IncompleteBody',
    ],
    ['an early end', '9', '9\r\n1234', '400 IncompleteBody'],
    ['no last chunk', '9', '9\r\n123456789\r\n', '400 IncompleteBody'],
    ['a size that is no number', '9', 'zz\r\n', '400 IncompleteBody'],
  ])('with %s store nothing', async (_what, length, body, expected) => {
    const answer = await putRaw('/data/spoilt', { ...TRAILER, 'x-amz-decoded-content-length': length }, body);
    expect(await codeOf(answer)).toBe(expected);
    expect(await outcome(read('spoilt'))).toBe('404 NoSuchKey');
    expect(await readdir(join(bench.rootDir, 'scratch'))).toEqual([]);
  });

  it('signed chunk by chunk are refused, not stored with their signatures', async () => {
    const headers = {
      'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
      'x-amz-decoded-content-length': '1',
    };
    expect(await codeOf(await putRaw('/data/signed', headers, '1;chunk-signature=0\r\na\r\n'))).toBe(
      '501 NotImplemented',
    );
  });
});

describe('authentication', () => {
  const settings = { region: REGION, forcePathStyle: true, maxAttempts: 1 };

  it('refuses another secret, another key, and none', async () => {
    const list = (credentials: typeof CREDENTIALS): Promise<string> => {
      const client = new S3Client({ ...settings, endpoint: bench.server.endpoint, credentials });
      return outcome(client.send(new ListObjectsV2Command({ Bucket: BUCKET })));
    };
    expect(await list(CREDENTIALS)).toBe('ok');
    expect(await list({ ...CREDENTIALS, secretAccessKey: 'x' })).toBe('403 SignatureDoesNotMatch');
    expect(await list({ ...CREDENTIALS, accessKeyId: 'x' })).toBe('403 InvalidAccessKeyId');
    expect(await codeOf(await fetch(`${bench.server.endpoint}/data?list-type=2`))).toBe('403 AccessDenied');
  });

  it('holds the body against its signed hash', async () => {
    const headers = {
      'x-amz-content-sha256': 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    };
    expect((await putRaw('/data/hashed', headers, 'abc')).status).toBe(200);
    expect(await codeOf(await putRaw('/data/hashed', headers, 'abd'))).toBe('400 XAmzContentSHA256Mismatch');
    expect(await read('hashed')).toBe('abc');
  });

  it('accepts presigned URLs for what they were made for', async () => {
    const putUrl = await presignedUrl(bench.server, 'PUT', '/data/pre%20signed');
    expect((await fetch(putUrl, { method: 'PUT', body: 'by url' })).status).toBe(200);
    const getUrl = await presignedUrl(bench.server, 'GET', '/data/pre%20signed', {
      'response-content-type': 'text/y',
    });
    const got = await fetch(getUrl);
    expect(await got.text()).toBe('by url');
    expect(got.headers.get('content-type')).toBe('text/y');
    expect(await codeOf(await fetch(putUrl))).toBe('403 SignatureDoesNotMatch');
  });
});

describe('the wire', () => {
  it('asks for a body only if it is going to be taken', async () => {
    const url = await presignedUrl(bench.server, 'PUT', '/data/expected');
    const attempt = async (target: string): Promise<[status: number | undefined, asked: boolean]> => {
      const request = httpRequest(target, {
        method: 'PUT',
        headers: { expect: '100-continue', 'content-length': '2' },
      });
      let asked = false;
      request.on('continue', () => {
        asked = true;
        request.end('ok');
      });
      request.flushHeaders();
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      response.resume();
      return [response.statusCode, asked];
    };
    expect(await attempt(url)).toEqual([200, true]);
    expect(await read('expected')).toBe('ok');
    expect(await attempt(url.replace('/data/', '/absent-bucket/'))).toEqual([403, false]);
  });

  it('demands a length', async () => {
    const url = new URL(await presignedUrl(bench.server, 'PUT', '/data/no-length'));
    const request = httpRequest(url, { method: 'PUT', headers: { 'transfer-encoding': 'chunked' } });
    request.end('x');
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(411);
  });

  it('leaves no object of an upload that breaks off', async () => {
    const url = new URL(await presignedUrl(bench.server, 'PUT', '/data/broken'));
    const socket = connect(Number(url.port), url.hostname);
    socket.write(
      `PUT ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-length: 1000000\r\n\r\n`,
    );
    socket.write(bytes(70_000));
    const scratch = join(bench.rootDir, 'scratch');
    await expect.poll(() => readdir(scratch)).toHaveLength(1);
    socket.destroy();
    await expect.poll(() => readdir(scratch)).toEqual([]);
    expect(await outcome(read('broken'))).toBe('404 NoSuchKey');
  });

  it('answers errors to HEAD without a body, and bad escapes with 400', async () => {
    const head = await sendRaw(bench.server, { method: 'HEAD', path: '/data/absent' });
    expect([head.status, await head.text()]).toEqual([404, '']);
    expect(await codeOf(await fetch(`${bench.server.endpoint}/data/%ff`))).toBe('400 InvalidURI');
  });

  it('wants a digest with DeleteObjects, and well-formed XML', async () => {
    const post = (headers: Record<string, string>, body: string) =>
      sendRaw(bench.server, { method: 'POST', path: '/data', query: { delete: '' }, headers, body });
    expect(await codeOf(await post({}, '<Delete/>'))).toBe('400 InvalidRequest');
    expect(await codeOf(await post({ 'content-md5': 'kAFQmDzST7DWlj99KOF/cg==' }, 'abc'))).toBe(
      '400 MalformedXML',
    );
    const cutShort = await post({ 'x-amz-checksum-crc32': 'e2gbRw==' }, '<Delete><Object><Key>acknowl');
    expect(await codeOf(cutShort)).toBe('400 MalformedXML');
  });
});

const SERVER_PROGRAM = `
import { startS3Server } from ${JSON.stringify(new URL('../../src/local/s3/server.ts', import.meta.url).href)};
const server = await startS3Server({ rootDir: process.argv[2], region: '${REGION}', credentials: ${JSON.stringify(CREDENTIALS)} });
await server.createBucket('${BUCKET}');
console.log(server.endpoint);
`;

describe('a server that is killed', () => {
  it('keeps what was acknowledged, and nothing of what was under way', async () => {
    const program = join(bench.rootDir, 'serve.mjs');
    await writeFile(program, SERVER_PROGRAM);
    const rootDir = join(bench.rootDir, 'killed');
    const node = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));
    const child = spawn(node, [program, rootDir], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const server = { ...bench.server, endpoint: line.toString().trim() };
    const client = new S3Client({
      endpoint: server.endpoint,
      region: REGION,
      credentials: CREDENTIALS,
      forcePathStyle: true,
    });
    await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'acknowledged', Body: 'yes' }));
    const url = new URL(await presignedUrl(server, 'PUT', '/data/half'));
    const socket = connect(Number(url.port), url.hostname);
    socket.on('error', () => undefined);
    socket.write(
      `PUT ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-length: ${String(9 * MIB)}\r\n\r\n`,
    );
    socket.write(bytes(MIB));
    await expect.poll(() => readdir(join(rootDir, 'scratch'))).toHaveLength(1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    socket.destroy();
    client.destroy();

    const revived = await startBench({ rootDir });
    const listed = await revived.client.send(new ListObjectsV2Command({ Bucket: BUCKET }));
    expect(listed.Contents?.map((object) => object.Key)).toEqual(['acknowledged']);
    expect(await readdir(join(rootDir, 'scratch'))).toEqual([]);
    await revived.close();
  }, 20_000);
});
