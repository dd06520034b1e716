import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

import { expect, it } from 'vitest';

const SERVER = pathToFileURL(join(import.meta.dirname, '../../src/local/lambda/server.ts')).href;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Runs a stack of its own that keeps one environment idle and one busy, and prints their ids. */
function stackSource(root: string): string {
  return `
    import { startLambdaServer } from ${JSON.stringify(SERVER)};
    const settings = {
      codeDir: ${JSON.stringify(join(root, 'code'))}, handler: 'index.handler', timeoutMs: 600000, memoryMb: 128,
      environment: {}, asyncRetries: 0, maxEventAgeMs: 60000,
    };
    const server = await startLambdaServer({
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, region: 'us-east-1', maxConcurrency: 2,
      functions: [{ ...settings, name: 'one' }, { ...settings, name: 'two' }],
      logDir: ${JSON.stringify(join(root, 'logs'))}, scratchDir: ${JSON.stringify(join(root, 'scratch'))}, nodePath: process.execPath, extraEnvironment: {},
      onLog: ({ line }) => {
        if (line === 'hangs') console.log(JSON.stringify(server.environments().map(({ pid }) => pid)));
      },
    });
    await server.invoke('one', '{}');
    await server.invoke('two', '{"hang":true}');
  `;
}

it('no process outlives a stack that is killed outright', async () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'local-lambda-orphans-')));
  try {
    mkdirSync(join(root, 'code'));
    writeFileSync(
      join(root, 'code', 'index.js'),
      `exports.handler = async ({ hang }) => {
        if (!hang) return;
        process.stdout.write('hangs\\n');
        await new Promise((resolve) => setTimeout(resolve, 600000));
      };`,
    );
    const main = join(root, 'stack.mjs');
    writeFileSync(main, stackSource(root));
    const stack = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] });
    const pids = await new Promise<unknown>((resolve) => {
      createInterface({ input: stack.stdout }).once('line', (line) => {
        resolve(JSON.parse(line));
      });
    });
    expect(pids).toEqual([expect.any(Number), expect.any(Number)]);
    stack.kill('SIGKILL');

    const left = () =>
      Array.isArray(pids) ? pids.filter((pid) => typeof pid === 'number' && isRunning(pid)) : pids;
    // The processes are not ours, so there is no event to wait for.
    for (let tries = 0; tries < 100 && String(left()) !== ''; tries++) await sleep(100);
    expect(left()).toEqual([]);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}, 30_000);
