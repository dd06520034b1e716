import { parseArgs } from 'node:util';
import { type PolicyName, policyNames } from '../../src/contracts/policy-names.ts';
import { adversarialStage } from '../support/adversarial-stages.ts';
import { timesWithoutCopies, wrongsOf } from '../support/stage-verdict.ts';

const help = `Runs small stages that are hard to judge, each drawn by its seed, under every policy in the simulator.

  npm run test:stages -- --seeds 10000

  --seeds N       how many (default 1000)
  --from S        the first seed (default 0)
  --only A,B      only these policies

Each must end, within 1.5 times its time without copies (on the mean, where luck decides), by no more copies than its
bound. What does not is printed with its seed: "adversarialStage(seed).scenario" in test/support is its scenario. Exit code 1 then.
`;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Runs the stage of one seed under each policy; prints and counts what is wrong. */
async function search(seed: number, policies: readonly PolicyName[]): Promise<number> {
  let found = 0;
  const tell = (policy: PolicyName, wrong: string): void => {
    found += 1;
    process.stdout.write(`FAILED seed ${seed} ${policy}: ${wrong}\n`);
  };
  const stage = adversarialStage(seed);
  let withoutMs: readonly number[] | undefined;
  try {
    withoutMs = await timesWithoutCopies(stage);
  } catch (error) {
    tell('none', messageOf(error));
  }
  for (const policy of policies) {
    try {
      for (const wrong of await wrongsOf(stage, policy, withoutMs)) tell(policy, wrong);
    } catch (error) {
      tell(policy, messageOf(error));
    }
  }
  return found;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '1000' },
      from: { type: 'string', default: '0' },
      only: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) {
    process.stdout.write(help);
    return 0;
  }
  const [seeds, from] = [Number(values.seeds), Number(values.from)];
  const only = values.only?.split(',');
  const unknown = only?.filter((name) => !policyNames.some((each) => each === name)) ?? [];
  if (!(Number.isInteger(seeds) && seeds > 0 && Number.isInteger(from) && from >= 0) || unknown.length > 0) {
    const wrong =
      unknown.length > 0
        ? `--only names no policies: ${unknown.join(', ')}`
        : '--seeds must be a whole number above 0, --from one from 0 on';
    process.stderr.write(`${wrong}\n\n${help}`);
    return 2;
  }
  const policies = policyNames.filter((name) => name !== 'none' && (only?.includes(name) ?? true));
  let found = 0;
  for (let seed = from; seed < from + seeds; seed++) {
    found += await search(seed, policies);
    if ((seed - from + 1) % 500 === 0) process.stdout.write(`${seed - from + 1} seeds, ${found} findings\n`);
  }
  process.stdout.write(
    `${found === 0 ? 'ok' : 'FAILED'}: seeds ${from}-${from + seeds - 1}, ${found} findings\n`,
  );
  return found === 0 ? 0 : 1;
}

process.exitCode = await main();
