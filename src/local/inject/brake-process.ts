// Run as a process of its own, see `startBrake`. Reads lines "<pid> <factor>".
import { createInterface } from 'node:readline';
import { DutyCycle } from './duty-cycle.ts';

const cycles: DutyCycle[] = [];

/** Nothing may stay stopped when this process goes, whoever ends it and however. */
function release(): never {
  for (const cycle of cycles) cycle.end();
  process.exit(0);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, release);
process.on('uncaughtException', release);

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const [pid = Number.NaN, factor = Number.NaN] = line.split(' ').map(Number);
    if (Number.isInteger(pid) && pid > 1 && factor > 1) cycles.push(new DutyCycle(pid, factor));
  })
  // Its end of the pipe closes with the stack, however that ends.
  .on('close', release);
