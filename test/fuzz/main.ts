import { parseArgs } from 'node:util';
import { tryInputs, type Fuzzer } from './fuzzer.ts';
import { fuzzers } from './fuzzers.ts';

const help = `Tries specs, requests, records and objects that a seed draws; each must be refused in words, or do no harm.

  npm run test:fuzz -- --minutes 10 --seed 1

  --minutes M     how long, all fuzzers together (default 1)
  --seed S        a whole number: other inputs (default 1)
  --only A,B      only these fuzzers
  --list          what there is

What does not hold is printed with the smallest input that shows it, and with its seed. Exit code 1 then.
`;

/** No fuzzer keeps the others waiting for longer. */
const sliceMs = 15_000;

interface Tally {
  held: number;
  failure?: string;
}

async function fuzz(
  chosen: readonly Fuzzer[],
  firstSeed: number,
  limitMs: number,
): Promise<ReadonlyMap<Fuzzer, Tally>> {
  const tallies = new Map<Fuzzer, Tally>(chosen.map((fuzzer) => [fuzzer, { held: 0 }]));
  const until = Date.now() + limitMs;
  for (let seed = firstSeed; Date.now() < until; seed++) {
    for (const [fuzzer, tally] of tallies) {
      if (tally.failure !== undefined || Date.now() >= until) continue;
      const { held, failure } = await tryInputs(fuzzer, {
        seed,
        limitMs: Math.min(sliceMs, until - Date.now()),
      });
      tally.held += held;
      if (failure === undefined) continue;
      tally.failure = failure;
      process.stdout.write(`FAILED ${failure}\n`);
    }
    if ([...tallies.values()].every(({ failure }) => failure !== undefined)) break;
  }
  return tallies;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '1' },
      seed: { type: 'string', default: '1' },
      only: { type: 'string' },
      list: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) {
    process.stdout.write(help);
    return 0;
  }
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  if (!(minutes > 0) || !Number.isInteger(seed)) {
    process.stderr.write(`--minutes must be more than 0 and --seed a whole number\n\n${help}`);
    return 2;
  }
  const names = values.only?.split(',');
  const all = await fuzzers();
  const chosen = all.filter(({ name }) => names?.includes(name) ?? true);
  if (values.list === true) {
    for (const { name, what } of chosen) process.stdout.write(`${name.padEnd(10)} ${what}\n`);
    return 0;
  }
  const tallies = await fuzz(chosen, seed, minutes * 60_000);
  for (const fuzzer of all) await fuzzer.close?.();
  for (const [{ name, what }, { held, failure }] of tallies)
    process.stdout.write(
      `${failure === undefined ? 'ok    ' : 'FAILED'} ${name.padEnd(10)} ${String(held).padStart(7)} inputs: ${what}\n`,
    );
  const failed = [...tallies.values()].filter(({ failure }) => failure !== undefined).length;
  process.stdout.write(`${tallies.size - failed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main();
