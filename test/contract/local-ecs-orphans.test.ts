import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

import { expect, it } from 'vitest';

const TASK = pathToFileURL(join(import.meta.dirname, '../../src/local/ecs/task.ts')).href;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Starts one task that never ends, and prints its process id once it runs. */
function stackSource(root: string): string {
  return `
    import { Task } from ${JSON.stringify(TASK)};
    const root = ${JSON.stringify(root)};
    const task = new Task({
      taskId: 'one', clusterName: 'main', clusterArn: 'arn:cluster/main', override: undefined, subnetId: 's', zone: 'z',
      startedBy: undefined, metadataUrl: 'http://nowhere', memoryMb: 128,
      definition: {
        family: 'f', arn: 'f:1', containerName: 'c', cwd: root, environment: {}, memoryMb: 128,
        command: ['node', root + '/task.mjs'],
      },
      server: {
        logDir: root + '/logs', scratchDir: root + '/scratch', nodePath: process.execPath, extraEnvironment: {},
        credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, region: 'us-east-1',
        onLog: ({ line }) => console.log(line === 'runs' ? task.view().pid : line),
      },
    });
    task.start();
  `;
}

it('no task outlives a stack that is killed outright', async () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'local-ecs-orphans-')));
  try {
    writeFileSync(join(root, 'task.mjs'), `console.log('runs'); setInterval(() => {}, 60000);`);
    const main = join(root, 'stack.mjs');
    writeFileSync(main, stackSource(root));
    const stack = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] });
    const pid = await new Promise<number>((resolve) => {
      createInterface({ input: stack.stdout }).once('line', (line) => {
        resolve(Number(line));
      });
    });
    // One that has failed to start would be gone by then, and prove nothing.
    await sleep(200);
    expect(isRunning(pid)).toBe(true);
    stack.kill('SIGKILL');
    // The process is not ours, so there is no event to wait for.
    for (let tries = 0; tries < 100 && isRunning(pid); tries++) await sleep(100);
    expect(isRunning(pid)).toBe(false);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}, 30_000);
