import { mkdtemp, readdir, rm } from 'node:fs/promises';
import {
  request as ask,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { KeptClient } from '../../src/adapters/node/kept/kept-client.ts';
import { KeptFiles } from '../../src/adapters/node/kept/kept-files.ts';
import { KeptObjects } from '../../src/adapters/node/kept/kept-objects.ts';
import { KeptServer } from '../../src/adapters/node/kept/kept-server.ts';
import { secretOf } from '../../src/adapters/node/kept/question.ts';
import { NotFoundError, StoreUnavailableError } from '../../src/contracts/errors.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import { bucketOfWorker } from '../../src/contracts/worker-places.ts';

const secret = secretOf('0123456789abcdef0123456789abcdef');
const key = 'jobs/sort-0123456789ab/data/7f/map/3/0';
const bytes = Buffer.from('0123456789');
const host = '127.0.0.1';
const data = { bucket: 'data', key };

let directory: string;
let closers: (() => unknown)[];
let s3: MemoryObjectStore;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'outrider-kept-'));
  closers = [];
  s3 = new MemoryObjectStore();
});

afterEach(async () => {
  for (const close of closers) await close();
  await rm(directory, { recursive: true, force: true });
});

/** A worker that keeps one object; where it answers. */
async function keeper(options: { secret?: Buffer; key?: string; port?: number } = {}) {
  const files = new KeptFiles(join(directory, `kept-${closers.length}`));
  await files.write(options.key ?? key, bytes);
  const server = new KeptServer(files, options.secret ?? secret, { host, port: options.port ?? 0 });
  closers.push(() => server.close());
  const address = await server.open();
  if (address === undefined) throw new Error('nothing listens');
  return { server, files, address, ref: { bucket: bucketOfWorker(address), key } };
}

/** One that keeps more than sockets hold, no two places of which look alike; how often it was asked. */
async function largeKeeper() {
  const body = Buffer.alloc(32 * 1024 * 1024);
  for (let at = 0; at < body.length; at += 4) body.writeUInt32LE(at, at);
  const files = new KeptFiles(join(directory, `kept-${closers.length}`));
  await files.write(key, body);
  let asked = 0;
  const server = new KeptServer(files, secret, { host, port: 0 }, () => epochMs(asked++));
  closers.push(() => server.close());
  const address = await server.open();
  if (address === undefined) throw new Error('nothing listens');
  return { server, body, address, ref: { bucket: bucketOfWorker(address), key }, questions: () => asked };
}

/** What another worker of the job sees, which gives a silent one up soon; where a busy machine may look so, not before the test ends. */
const reader = (silenceMs = 200): KeptObjects =>
  new KeptObjects(s3, {
    client: new KeptClient(secret, { silenceMs }),
    files: new KeptFiles(join(directory, 'own')),
    dataBucket: 'data',
  });

async function listening(server: Server | ReturnType<typeof createSocketServer>): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, host, resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return `${host}:${(server.address() as AddressInfo).port}`;
}

/** Whoever has come to have the address of a worker. */
async function stranger(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer);
  closers.push(() => {
    server.closeAllConnections();
  });
  return { bucket: bucketOfWorker(await listening(server)), key };
}

describe('an output that a worker keeps', () => {
  it('is read by others of its job, whole, in ranges and by its size', async () => {
    const { ref, server } = await keeper();
    expect(server.askedAt).toBeUndefined();
    expect(Buffer.from(await reader().readAll(ref)).toString()).toBe('0123456789');
    expect(Buffer.from(await reader().readAll(ref, { start: 3, end: 7 })).toString()).toBe('3456');
    expect(Buffer.from(await reader().readAll(ref, { start: 8, end: 20 })).toString()).toBe('89');
    expect(await reader().readAll(ref, { start: 4, end: 4 })).toHaveLength(0);
    expect(await reader().head(ref)).toMatchObject({ key, sizeBytes: 10 });
    expect(server.askedAt).toBeGreaterThan(0);
  });

  it('is put together from the parts of an upload, and leaves no file when its worker ends', async () => {
    const { files, address, server } = await keeper();
    const own = new KeptObjects(s3, { client: new KeptClient(secret), files, dataBucket: 'data' });
    const ref = { bucket: bucketOfWorker(address), key: `${key}1` };
    const upload = await own.beginUpload(ref);
    const parts = [
      await own.uploadPart(upload, 2, Buffer.from('defg')),
      await own.uploadPart(upload, 1, Buffer.from('abc')),
    ];
    expect(await own.completeUpload(upload, parts.toReversed())).toBe('completed');
    expect(await own.completeUpload(upload, parts)).toBe('gone');
    await own.uploadPart(await own.beginUpload(ref), 1, bytes);
    expect(Buffer.from(await reader().readAll(ref)).toString()).toBe('abcdefg');
    expect(Buffer.from(await reader().readAll(ref, { start: 2, end: 4 })).toString()).toBe('cd');
    await server.close();
    expect(await readdir(directory)).toEqual([]);
  });

  it('is not given to who does not know the word of the job', async () => {
    const { address, server } = await keeper();
    const plain = await fetch(`http://${address}/${key}`, { headers: { range: 'bytes=0-9' } });
    expect([plain.status, await plain.text()]).toEqual([403, '']);
    const client = new KeptClient(secretOf('another job'), { silenceMs: 200 });
    await expect(client.sizeOf(address, key)).rejects.toThrow(NotFoundError);
    expect(server.askedAt).toBeUndefined();
  });

  it.each([
    ['a worker of another job', { secret: secretOf('another') }],
    ['a worker that keeps the output of another attempt', { key: `${key}9` }],
  ])('is not taken from %s at its address', async (_, other) => {
    const { ref } = await keeper(other);
    await expect(reader().readAll(ref)).rejects.toThrow(NotFoundError);
    expect(await reader().head(ref)).toBeUndefined();
  });

  it('is not taken from whoever answers with what was asked, or with an older answer', async () => {
    const { address } = await keeper();
    let recorded: Record<string, string> = {};
    const told = await stranger((request, response) => {
      const size = { 'x-outrider-size': '10', 'x-outrider-proof': request.headers['x-outrider-proof'] };
      response.writeHead(200, size).end(bytes);
    });
    await expect(reader().readAll(told)).rejects.toThrow(NotFoundError);
    const between = await stranger((request, response) => {
      const isFirst = Object.keys(recorded).length === 0;
      void fetch(`http://${address}${request.url ?? ''}`, {
        headers: request.headers as Record<string, string>,
      }).then(async (answer) => {
        if (isFirst) recorded = Object.fromEntries(answer.headers);
        response.writeHead(200, recorded).end(Buffer.from(await answer.arrayBuffer()));
      });
    });
    expect(Buffer.from(await reader().readAll(between)).toString()).toBe('0123456789');
    await expect(reader().readAll(between)).rejects.toThrow(NotFoundError);
  });

  it('is unreachable where nobody listens, nobody says a word, or the answer breaks off', async () => {
    const { address, server } = await keeper();
    await server.close();
    const gone = { bucket: bucketOfWorker(address), key };
    await expect(reader().readAll(gone)).rejects.toThrow(StoreUnavailableError);
    await expect(reader().head(gone)).rejects.toThrow(StoreUnavailableError);
    const sockets = createSocketServer((socket) => {
      closers.unshift(() => socket.destroy());
    });
    const frozen = { bucket: bucketOfWorker(await listening(sockets)), key };
    await expect(reader().readAll(frozen)).rejects.toThrow(StoreUnavailableError);
    const { address: real } = await keeper();
    const cut = await stranger((request, response) => {
      void fetch(`http://${real}${request.url ?? ''}`, {
        headers: request.headers as Record<string, string>,
      }).then((answer) => {
        response.writeHead(200, Object.fromEntries(answer.headers));
        response.write(bytes.subarray(0, 4), () => request.socket.destroy());
      });
    });
    await expect(reader().readAll(cut)).rejects.toThrow(StoreUnavailableError);
  });

  it('is read whole where its connection breaks once while its worker lives: on from what was taken', async () => {
    const { address } = await keeper();
    const asked: unknown[] = [];
    const cutOnce = await stranger((request, response) => {
      asked.push(request.headers['x-outrider-range']);
      void fetch(`http://${address}${request.url ?? ''}`, {
        headers: request.headers as Record<string, string>,
      }).then(async (answer) => {
        response.writeHead(200, Object.fromEntries(answer.headers));
        const body = Buffer.from(await answer.arrayBuffer());
        if (asked.length > 1) response.end(body);
        else response.write(body.subarray(0, 4), () => setTimeout(() => request.socket.destroy(), 50));
      });
    });
    expect(Buffer.from(await reader().readAll(cutOnce, { start: 1, end: 9 })).toString()).toBe('12345678');
    expect(asked).toEqual(['1-9', '5-9']);
  });

  it('is read whole where its worker ends in the middle, which has put it into the data bucket', async () => {
    const { ref, body, server } = await largeKeeper();
    await s3.write(data, body);
    const taken: Uint8Array[] = [];
    for await (const chunk of reader(60_000).read(ref)) {
      if (taken.length === 0) await server.close();
      taken.push(chunk);
    }
    expect(Buffer.concat(taken).equals(body)).toBe(true);
  });

  it('is given to the end to whoever reads it as its worker closes, within the time that it has for that', async () => {
    const { ref, body, server, address } = await largeKeeper();
    const taken: Uint8Array[] = [];
    let closed: Promise<void> | undefined;
    for await (const chunk of reader(60_000).read(ref)) {
      closed ??= server.close(durationMs(60_000));
      taken.push(chunk);
    }
    await closed;
    expect(Buffer.concat(taken).equals(body)).toBe(true);
    await expect(new KeptClient(secret).sizeOf(address, key)).rejects.toThrow(StoreUnavailableError);
    const { ref: other, server: late } = await largeKeeper();
    const reading = reader(60_000).read(other)[Symbol.asyncIterator]();
    await reading.next();
    await late.close(durationMs(50));
    await expect(
      (async () => {
        while ((await reading.next()).done !== true);
      })(),
    ).rejects.toThrow(StoreUnavailableError);
  });

  it('is asked for once by a reader that pauses for longer than a worker may be silent', async () => {
    const { ref, body, questions } = await largeKeeper();
    const taken: Uint8Array[] = [];
    for await (const chunk of reader().read(ref)) {
      if (taken.length === 0) await delay(700);
      taken.push(chunk);
    }
    expect(Buffer.concat(taken).equals(body)).toBe(true);
    expect(questions()).toBe(1);
  });

  it('is unreachable where its worker falls silent after its reader has paused', async () => {
    const { address, body } = await largeKeeper();
    const silent = await stranger((request, response) => {
      void fetch(`http://${address}${request.url ?? ''}`, {
        headers: request.headers as Record<string, string>,
      }).then((answer) => {
        response.writeHead(200, Object.fromEntries(answer.headers));
        response.write(body.subarray(0, 8 * 1024 * 1024));
        void answer.body?.cancel();
      });
    });
    const reading = reader().read(silent)[Symbol.asyncIterator]();
    await reading.next();
    await delay(700);
    await expect(
      (async () => {
        while ((await reading.next()).done !== true);
      })(),
    ).rejects.toThrow(StoreUnavailableError);
  });

  it('is read from the data bucket where its worker has put it there and ended, however long its address says nothing', async () => {
    const said: string[] = [];
    const silent = async (): Promise<{ bucket: string; key: string }> => {
      const server = createSocketServer((socket) => {
        said.push('connected');
        closers.unshift(() => socket.destroy());
        socket.on('error', () => undefined);
      });
      return { bucket: bucketOfWorker(await listening(server)), key };
    };
    await s3.write(data, bytes);
    // Longer than this test may take.
    const patient = reader(600_000);
    for (const ref of [await silent(), await silent(), await silent()]) {
      expect(Buffer.from(await patient.readAll(ref, { start: 2, end: 5 })).toString()).toBe('234');
      expect(await patient.head(ref)).toMatchObject({ key, sizeBytes: 10 });
    }
    expect(said).toHaveLength(3);
  });

  it('is waited for where its worker is slow and has put nothing into the data bucket', async () => {
    const { address } = await keeper();
    const ref = await stranger((request, response) => {
      setTimeout(() => {
        ask(`http://${address}${request.url ?? ''}`, { method: request.method, headers: request.headers })
          .once('response', (answer) => {
            response.writeHead(answer.statusCode ?? 500, answer.headers);
            answer.pipe(response);
          })
          .end();
      }, 1_500);
    });
    expect(Buffer.from(await reader(600_000).readAll(ref)).toString()).toBe('0123456789');
  });

  it('is read from the data bucket where its worker has put it there and ended', async () => {
    const { address, server } = await keeper();
    await server.close();
    await s3.write(data, bytes);
    const gone = { bucket: bucketOfWorker(address), key };
    const one = reader();
    expect(Buffer.from(await one.readAll(gone, { start: 3, end: 5 })).toString()).toBe('34');
    expect(await one.head(gone)).toMatchObject({ sizeBytes: 10 });
    // Whoever has listened in vain does so no more.
    let asked = 0;
    const late = createServer(() => asked++);
    closers.push(() => {
      late.closeAllConnections();
      late.close();
    });
    await new Promise<void>((resolve) => void late.listen(Number(address.split(':')[1]), host, resolve));
    expect(Buffer.from(await one.readAll(gone, { start: 5, end: 7 })).toString()).toBe('56');
    expect(asked).toBe(0);
  });
});
