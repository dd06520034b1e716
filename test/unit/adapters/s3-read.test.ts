import { once } from 'node:events';
import type { IncomingMessage, ServerResponse, Server } from 'node:http';
import { describe, expect, it } from 'vitest';
import { s3Client } from '../../../src/adapters/aws/clients.ts';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { ConflictError, StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { collect } from '../../contract/ports/builders.ts';
import { startFakeS3 } from '../../support/fake-s3.ts';

const BODY = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
const place = { bucket: 'books', key: 'a' };

interface Fake {
  readonly server: Server;
  readonly store: S3ObjectStore;
  readonly requests: IncomingMessage[];
}

/** An S3 of one object, whose answer to request number n (from 0) `respond` gives. */
async function fake(respond: (n: number, response: ServerResponse, from: number) => void): Promise<Fake> {
  const requests: IncomingMessage[] = [];
  const { server, client } = await startFakeS3((request, response) => {
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    requests.push(request);
    respond(requests.length - 1, response, from);
  });
  return { server, store: new S3ObjectStore(client), requests };
}

const headers = (response: ServerResponse, from: number): void => {
  response.writeHead(from === 0 ? 200 : 206, { 'content-length': BODY.length - from, etag: '"one"' });
};

/** Sends `length` bytes of what is due, then breaks the connection. */
const breakAfter = (response: ServerResponse, from: number, length: number): void => {
  headers(response, from);
  response.write(BODY.subarray(from, from + length), () => {
    response.destroy();
  });
};

describe('reading an object whose stream breaks', () => {
  it('asks for the rest of the same version, and gives every byte once', async () => {
    const { store, requests } = await fake((n, response, from) => {
      if (n < 3) breakAfter(response, from, 20_000);
      else {
        headers(response, from);
        response.end(BODY.subarray(from));
      }
    });
    expect(Buffer.concat(await collect(store.read(place))).equals(BODY)).toBe(true);
    expect(requests.map((request) => request.headers.range)).toEqual([
      undefined,
      'bytes=20000-99999',
      'bytes=40000-99999',
      'bytes=60000-99999',
    ]);
    expect(requests.map((request) => request.headers['if-match'])).toEqual([
      undefined,
      '"one"',
      '"one"',
      '"one"',
    ]);
  });

  it('gives up when no further byte arrives', async () => {
    const { store, requests } = await fake((_, response, from) => {
      breakAfter(response, from, from === 0 ? 10 : 0);
    });
    await expect(collect(store.read(place))).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(requests.length).toBeLessThan(10);
  });

  it('does not mix two versions of an object', async () => {
    const { store } = await fake((n, response, from) => {
      if (n === 0) breakAfter(response, from, 10);
      else response.writeHead(412).end('<Error><Code>PreconditionFailed</Code></Error>');
    });
    await expect(collect(store.read(place))).rejects.toBeInstanceOf(ConflictError);
  });

  it('lets go of the connection when the reader stops early', async () => {
    const { store, requests } = await fake((_, response, from) => {
      headers(response, from);
      // The rest is never sent: only the reader can end this.
      response.write(BODY.subarray(0, 10));
    });
    for await (const chunk of store.read(place)) {
      expect(chunk).toHaveLength(10);
      break;
    }
    const socket = requests[0]?.socket;
    if (socket?.destroyed === false) await once(socket, 'close');
    expect(socket?.destroyed).toBe(true);
  });

  it('ends at once when the signal fires while nothing arrives', async () => {
    const { store } = await fake((_, response, from) => {
      headers(response, from);
      response.write(BODY.subarray(0, 10));
    });
    const abort = new AbortController();
    const reading = (async () => {
      for await (const chunk of store.read(place, { signal: abort.signal })) {
        expect(chunk).toHaveLength(10);
        setImmediate(() => {
          abort.abort();
        });
      }
    })();
    await expect(reading).rejects.toHaveProperty('name', 'AbortError');
  });
});

describe('the S3 client', () => {
  it.each([
    [{ AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9000' }, true],
    [{ AWS_ENDPOINT_URL: 'http://[::1]:9000' }, true],
    [{ AWS_ENDPOINT_URL: 'http://localhost:9000' }, true],
    [{ AWS_ENDPOINT_URL_S3: 'https://s3.example.com' }, false],
    [{}, false],
  ])('addresses buckets by path where the endpoint of %j is an address: %s', (env, expected) => {
    const client = s3Client({ region: 'us-east-1', env });
    expect(client.config.forcePathStyle).toBe(expected);
    client.destroy();
  });
});
