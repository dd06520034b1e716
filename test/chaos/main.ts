import { parseArgs } from 'node:util';
import { type CampaignOptions, runCampaign } from './campaign.ts';

const help = `Runs random jobs on the embedded stack while things go wrong, and compares every output with coreutils and SQLite.

  npm run test:chaos -- --jobs 200 --seed 1

  --jobs N        how many jobs (default 15)
  --seed S        another seed, other jobs and faults (default 1)
  --only I,J      only these jobs of the campaign, by the number that begins their line
  --in-flight N   jobs at a time on one stack (default 3)
  --batch N       jobs of one stack, which is then looked over and taken down (default 25)
  --limit SECONDS after which a job counts as hung (default 120)

What goes wrong: functions and workers are killed or frozen beyond the lease and thawed; a step of a job is held in the
middle of a write while another process does it again; requests are lost, served twice at once or late, and delayed;
answers are lost after the request was served; strangers put objects and begin uploads in and beside the output
prefixes; jobs are cancelled, aborted in the console, submitted twice, and race for prefixes that overlap.

What must hold: an output is exact, or the job has ended as it had to and left none; nothing of a job is left in the
buckets, in the ledger or among the processes; what is the strangers' is as they left it; no job runs for ever.

One line for each job: its number, kind, worker, policy and story; how it ended; what was done to it; its seed. What
is drawn hangs on the seed alone; when it strikes hangs on the machine. Where a job fails, the data and logs of its
stack are kept, with the decision log in "evidence". Exit code 1 where anything failed.
`;

function count(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`--${name} must be a whole number of at least 1, not "${String(text)}"`);
  return value;
}

function optionsOf(args: readonly string[]): CampaignOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(
        ['jobs', 'seed', 'only', 'in-flight', 'batch', 'limit'].map((name) => [
          name,
          { type: 'string' as const },
        ]),
      ),
      help: { type: 'boolean', short: 'h' },
    },
  });
  const given = values as Readonly<Record<string, string | undefined>> & { help?: boolean };
  if (given.help === true) return undefined;
  const only = given['only']?.split(',').map((text) => count('only', String(Number(text) + 1), 1) - 1);
  return {
    jobs: count('jobs', given['jobs'], 15),
    seed: given['seed'] ?? '1',
    inFlight: count('in-flight', given['in-flight'], 3),
    batch: count('batch', given['batch'], 25),
    limitMs: 1_000 * count('limit', given['limit'], 120),
    ...(only === undefined ? {} : { only }),
    print: (line) => process.stdout.write(`${line}\n`),
  };
}

async function main(): Promise<number> {
  let options: CampaignOptions | undefined;
  try {
    options = optionsOf(process.argv.slice(2));
  } catch (cause) {
    process.stderr.write(`${cause instanceof Error ? cause.message : String(cause)}\n\n${help}`);
    return 2;
  }
  if (options === undefined) {
    process.stdout.write(help);
    return 0;
  }
  const { passed, failed, faults } = await runCampaign(options);
  const told = [...faults]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, times]) => `${times} ${name}`);
  process.stdout.write(`faults: ${told.join(', ')}\n${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main();
