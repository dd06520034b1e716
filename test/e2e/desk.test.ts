import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type Started, Workplace } from './command.ts';

const connectionSchema = z.object({
  apiUrl: z.string(),
  credentials: z.object({ accessKeyId: z.string(), secretAccessKey: z.string() }),
  environment: z.record(z.string(), z.string()),
  pid: z.number(),
});
type Connection = z.output<typeof connectionSchema>;

const isLinux = process.platform === 'linux';
const isRoot = process.geteuid?.() === 0;
const NOBODY = 65_534;
/** The only files that hold the secret. */
const PRIVATE_FILES = ['connection.json', 'credentials.json', 'environment.sh'];

let umaskBefore: number | undefined;
afterEach(() => {
  if (umaskBefore !== undefined) process.umask(umaskBefore);
  umaskBefore = undefined;
});

/** A stack as the careless have it: nothing is taken from new files unless the stack does it. */
async function startStack(
  place: Workplace,
  ...more: readonly string[]
): Promise<{ local: Started; connection: Connection }> {
  umaskBefore ??= process.umask(0);
  const local = place.start('local', '--slots', '2', '--json', ...more);
  await local.saying('"outputs"');
  return { local, connection: await connectionOf(place) };
}

async function connectionOf(place: Workplace): Promise<Connection> {
  const text = await readFile(place.path('.outrider', 'connection.json'), 'utf8');
  return connectionSchema.parse(JSON.parse(text));
}

/** A job leaves environments waiting, each with a server of its own, and data, logs and records. */
async function runJob(place: Workplace): Promise<void> {
  await writeFile(place.path('f.txt'), 'b a b\n');
  const done = await place.run('submit', 'wordcount', '--input', 'f.txt', '--wait', '--json');
  expect([done.exitCode, JSON.parse(done.out)]).toMatchObject([0, { state: 'succeeded' }]);
}

async function stop(local: Started): Promise<void> {
  local.process.kill('SIGINT');
  expect((await local.finished).exitCode).toBe(0);
}

/** Ids of a process and all that descend from it. */
async function family(pid: number): Promise<readonly number[]> {
  const parents = new Map<number, number>();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const line = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    const parent = Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[1]);
    if (line !== '') parents.set(Number(name), parent);
  }
  const found = [pid];
  for (const each of found) for (const [id, parent] of parents) if (parent === each) found.push(id);
  return found;
}

/** Addresses on which some processes listen for TCP, as `hex-address:port`. */
async function listening(pids: readonly number[]): Promise<readonly { address: string; port: number }[]> {
  const sockets = new Set<string>();
  for (const pid of pids) {
    const dir = `/proc/${String(pid)}/fd`;
    for (const fd of await readdir(dir).catch(() => [])) {
      const target = await readlink(join(dir, fd)).catch(() => '');
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode !== undefined) sockets.add(inode);
    }
  }
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  );
  return tables
    .flatMap((table) => table.trim().split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === '0A' && sockets.has(fields[9] ?? ''))
    .map((fields) => {
      const [address = '', port = ''] = (fields[1] ?? '').split(':');
      return { address, port: Number.parseInt(port, 16) };
    });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Status and head of the answer to a request by hand. */
function ask(port: number, lines: readonly string[], body = ''): Promise<{ status: number; head: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) return;
      socket.destroy();
      resolve({ status: Number(text.split(' ')[1]), head: text.slice(0, end).toLowerCase() });
    });
    socket.once('error', reject);
    const head = [...lines, `content-length: ${String(Buffer.byteLength(body))}`].join('\r\n');
    socket.write(`${head}\r\n\r\n${body}`);
  });
}

const FORGED =
  'authorization: AWS4-HMAC-SHA256 Credential=outrider/20260101/us-east-1/dynamodb/aws4_request, ' +
  `SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`;
const LIST_TABLES = [
  'content-type: application/x-amz-json-1.0',
  'x-amz-target: DynamoDB_20120810.ListTables',
];
const NEXT = 'GET /2018-06-01/runtime/invocation/next HTTP/1.1';

/** What no server may serve, and what it may answer instead. */
const attacks = (
  port: number,
): readonly (readonly [name: string, lines: readonly string[], status: RegExp])[] => {
  const host = `host: 127.0.0.1:${String(port)}`;
  const refused = /^(400|401|403)$/;
  return [
    ['unsigned GET', ['GET / HTTP/1.1', host], refused],
    ['unsigned POST', ['POST / HTTP/1.1', host, ...LIST_TABLES], refused],
    [
      'forged signature',
      ['POST / HTTP/1.1', host, FORGED, 'x-amz-date: 20260101T000000Z', ...LIST_TABLES],
      refused,
    ],
    ['unsigned invocation', ['POST /2015-03-31/functions/x/invocations HTTP/1.1', host], refused],
    ['unsigned job', ['POST /prod/jobs HTTP/1.1', host, 'content-type: text/plain'], refused],
    ['next event', [NEXT, host], refused],
    ['metadata', ['GET /v4/00000000000000000000000000000000/task HTTP/1.1', host], /^(400|401|403|404)$/],
    ['foreign origin', ['POST / HTTP/1.1', host, 'origin: http://evil.example'], /^403$/],
    ['foreign host', ['POST / HTTP/1.1', `host: evil.example:${String(port)}`], /^403$/],
    ['preflight', ['OPTIONS / HTTP/1.1', host, 'origin: http://evil.example'], /^403$/],
  ];
};

async function filesBelow(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return [dir, ...entries.map(({ parentPath, name }) => join(parentPath, name))];
}

describe.runIf(isLinux)('a local stack on a machine that others use', { timeout: 240_000 }, () => {
  it('listens on the loopback interface alone, and serves nobody who does not sign on any port that it has', async () => {
    const place = await Workplace.make();
    const port = await freePort();
    const { local } = await startStack(place, '--port', String(port));
    await runJob(place);
    const servers = await listening(await family(local.process.pid ?? 0));
    // S3, DynamoDB, Lambda, ECS, logs, Step Functions, API, and the Runtime API of an environment at least.
    expect(servers.length).toBeGreaterThanOrEqual(8);
    expect(servers.map((each) => each.port)).toContain(port);
    expect(new Set(servers.map(({ address }) => address))).toEqual(new Set(['0100007F']));
    for (const { port } of servers) {
      for (const [name, lines, status] of attacks(port)) {
        const answer = await ask(port, lines);
        expect([name, String(answer.status)]).toEqual([name, expect.stringMatching(status)]);
        expect(answer.head).not.toContain('access-control');
      }
    }
    await stop(local);
  });

  it('keeps all its files from others under any umask, and its secret out of logs, records and arguments', async () => {
    const place = await Workplace.make();
    const { local, connection } = await startStack(place);
    await runJob(place);
    const { secretAccessKey } = connection.credentials;
    for (const pid of await family(local.process.pid ?? 0)) {
      const line = await readFile(`/proc/${String(pid)}/cmdline`, 'utf8').catch(() => '');
      expect(line).not.toContain(secretAccessKey);
    }
    const holders: string[] = [];
    for (const path of await filesBelow(place.path('.outrider'))) {
      const info = await lstat(path).catch(() => undefined);
      if (info === undefined) continue; // Scratch files come and go.
      expect([path, info.mode & 0o077]).toEqual([path, 0]);
      if (!info.isFile()) continue;
      const text = await readFile(path).catch(() => Buffer.of());
      if (text.includes(secretAccessKey)) holders.push(path.slice(place.path('.outrider').length + 1));
    }
    expect(holders.toSorted()).toEqual(PRIVATE_FILES);
    await stop(local);
  });

  it('has random keys, keeps them over a restart, and shows a person none', async () => {
    const place = await Workplace.make();
    const first = await startStack(place);
    await stop(first.local);
    const second = await startStack(place);
    expect(second.connection.credentials).toEqual(first.connection.credentials);
    await runJob(place);
    await stop(second.local);

    const elsewhere = await Workplace.make();
    const other = elsewhere.start('local', '--slots', '2');
    const said = await other.saying('Ctrl-C ends it.');
    const { credentials } = await connectionOf(elsewhere);
    expect(credentials.accessKeyId).toMatch(/^AKIA[A-Z2-7]{16}$/);
    expect(credentials.secretAccessKey).toMatch(/^[A-Za-z0-9+/]{40}$/);
    expect(credentials.secretAccessKey).not.toBe(first.connection.credentials.secretAccessKey);
    expect(said).not.toContain(credentials.secretAccessKey);
    const sourced = spawnSync('sh', ['-c', '. .outrider/environment.sh && echo "$AWS_SECRET_ACCESS_KEY"'], {
      cwd: elsewhere.dir,
      encoding: 'utf8',
    });
    expect(sourced.stdout.trim()).toBe(credentials.secretAccessKey);
    await stop(other);
  });

  it('gives up keys that others could have read', async () => {
    const place = await Workplace.make();
    const first = await startStack(place);
    await stop(first.local);
    await chmod(place.path('.outrider', 'credentials.json'), 0o644);
    const second = await startStack(place);
    expect(second.connection.credentials).not.toEqual(first.connection.credentials);
    await stop(second.local);
  });

  it('takes the access of others to a state directory that is there', async () => {
    const place = await Workplace.make();
    await mkdir(place.path('.outrider'));
    await chmod(place.path('.outrider'), 0o777);
    const { local } = await startStack(place);
    expect((await stat(place.path('.outrider'))).mode & 0o777).toBe(0o700);
    await stop(local);
  });

  it('refuses a state directory that is a link', async () => {
    const place = await Workplace.make();
    await mkdir(place.path('real'));
    await symlink('real', place.path('.outrider'));
    const { exitCode, err } = await place.run('local');
    expect([exitCode, err]).toEqual([2, expect.stringContaining('is a symbolic link')]);
  });

  it('writes the output of a job as any other file of the person', async () => {
    const place = await Workplace.make();
    umaskBefore = process.umask(0o022);
    await writeFile(place.path('f.txt'), 'b a b\n');
    const done = await place.run('run', 'wordcount', '--input', 'f.txt', '--output', 'out');
    expect(done.exitCode).toBe(0);
    expect((await stat(place.path('out'))).mode & 0o777).toBe(0o755);
    expect((await stat(place.path('out', '_SUCCESS'))).mode & 0o777).toBe(0o644);
  });
});

describe.runIf(isLinux && isRoot)('another user of the machine', { timeout: 240_000 }, () => {
  it('reads nothing of a stack, and is no owner of its directory', async () => {
    const place = await Workplace.make();
    const { local } = await startStack(place);
    await runJob(place);
    // All above is open, so that nothing but the stack's own modes can hold them back.
    await chmod(place.dir, 0o755);
    const pids = await family(local.process.pid ?? 0);
    const wanted = [
      ...PRIVATE_FILES.map((name) => place.path('.outrider', name)),
      place.path('.outrider'),
      ...pids.map((pid) => `/proc/${String(pid)}/environ`),
    ];
    const child = spawn(
      'sh',
      [
        '-c',
        'for path; do if test -d "$path"; then ls "$path"; else cat "$path"; fi; done; true',
        'sh',
        ...wanted,
      ],
      {
        uid: NOBODY,
        gid: NOBODY,
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    let seen = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (seen += text));
    await new Promise((resolve) => child.once('close', resolve));
    expect(seen).toBe('');
    await stop(local);
  });

  it('cannot have a command speak to a service of its own', async () => {
    const place = await Workplace.make();
    await mkdir(place.path('.outrider'));
    const connection = {
      apiUrl: 'http://127.0.0.1:1/prod',
      region: 'us-east-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
      environment: {},
      outputs: {},
      pid: process.pid,
    };
    const path = place.path('.outrider', 'connection.json');
    await writeFile(path, JSON.stringify(connection));
    await chown(path, NOBODY, NOBODY);
    const { exitCode, err } = await place.run('list');
    expect([exitCode, err]).toEqual([2, expect.stringContaining('belongs to another user')]);
  });

  it('cannot lend its directory to a stack', async () => {
    const place = await Workplace.make();
    await mkdir(place.path('.outrider'));
    await chown(place.path('.outrider'), NOBODY, NOBODY);
    const { exitCode, err } = await place.run('local');
    expect([exitCode, err]).toEqual([2, expect.stringContaining('belongs to another user')]);
  });
});
