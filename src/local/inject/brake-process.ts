// Run as a process of its own, see `startBrake`. Reads lines "slow <pid> <factor>" and "freeze <pid> <ms>".
import { createInterface } from 'node:readline';
import { DutyCycle } from './duty-cycle.ts';
import { Freeze } from './freeze.ts';

const held: (DutyCycle | Freeze)[] = [];

/** Nothing may stay stopped when this process goes, whoever ends it and however. */
function release(): never {
  for (const each of held) each.end();
  process.exit(0);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, release);
process.on('uncaughtException', release);

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const [order, ...numbers] = line.split(' ');
    const [pid = Number.NaN, amount = Number.NaN] = numbers.map(Number);
    if (!(Number.isInteger(pid) && pid > 1 && amount > 1)) return;
    held.push(order === 'freeze' ? new Freeze(pid, amount) : new DutyCycle(pid, amount));
  })
  // Its end of the pipe closes with the stack, however that ends.
  .on('close', release);
