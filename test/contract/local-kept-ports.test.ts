import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { keepPorts, keptPorts, serverNames } from '../../src/local/kept-ports.ts';

async function stateDir(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'outrider-ports-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A port that somebody has until `free` is called. */
async function taken(): Promise<{ port: number; free: () => Promise<void> }> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const free = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => {
        resolve();
      });
    });
  onTestFinished(free);
  return { port: (server.address() as AddressInfo).port, free };
}

describe('ports of a local stack', () => {
  it('are those of the stack before it, but for those that somebody has now', async () => {
    const dir = await stateDir();
    const [busy, other] = [await taken(), await taken()];
    await other.free();
    const endpointOf = (name: string): string =>
      `http://127.0.0.1:${String(name === 's3' ? other.port : busy.port)}${name === 'api' ? '/prod' : ''}`;
    const endpoints = Object.fromEntries(serverNames.map((name) => [name, endpointOf(name)]));
    await keepPorts(dir, endpoints as Parameters<typeof keepPorts>[1]);
    expect(JSON.parse(await readFile(join(dir, 'ports.json'), 'utf8'))).toMatchObject({ api: busy.port });
    expect(await keptPorts(dir)).toEqual({ s3: other.port });
  });

  it('are noted also where an address leaves out the port of HTTP', async () => {
    const dir = await stateDir();
    const endpoints = Object.fromEntries(serverNames.map((name) => [name, 'http://127.0.0.1:80']));
    await keepPorts(dir, endpoints as Parameters<typeof keepPorts>[1]);
    expect(JSON.parse(await readFile(join(dir, 'ports.json'), 'utf8'))).toMatchObject({ api: 80, s3: 80 });
  });

  it.each(['', 'null', '{"s3":0,"api":"80","sts":99999}', '[1]'])(
    'are any where %j was noted',
    async (text) => {
      const dir = await stateDir();
      await writeFile(join(dir, 'ports.json'), text);
      expect(await keptPorts(dir)).toEqual({});
    },
  );

  it('are any where there was no stack', async () => {
    expect(await keptPorts(await stateDir())).toEqual({});
  });
});
