import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import { mean, quantile } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import { jockeyJobNames } from '../traces/generators/jockey-jobs.ts';
import { claim } from './checks.ts';
import {
  type Check,
  type Experiment,
  type ExperimentInput,
  type Findings,
  type Row,
  rounded,
} from './experiment.ts';
import { drawNoise, type InputNoise, judge, type JudgedRun, prepare, workSigmas } from './jockey-runs.ts';

type Setting = NonNullable<PolicyConfigInput['jockey']>;

/** The policies of Fig. 4, and ours. */
const policies = {
  jockey: { preset: 'paper' },
  'jockey, raises held in its dead zone': { preset: 'paper', holdsInDeadZone: true },
  'without adaptation': { preset: 'paper', control: 'once' },
  'without simulator': { preset: 'paper', predictor: 'amdahl' },
  'max allocation': { preset: 'paper', control: 'most' },
  outrider: { preset: 'outrider' },
} as const satisfies Record<string, Setting>;
type PolicyName = keyof typeof policies;
const names = Object.keys(policies) as PolicyName[];
/** Missed by Jockey in the paper: 1 of 94. */
const paperMissed = 1 / 94;
/** Most above the oracle that Jockey is to ask for; the paper has 25 % over all its runs, and 35 % in Fig. 11. */
const mostAbove = 35;
/** And ours. */
const ourMostAbove = 25;
/** Each job has a deadline, and one that is twice as long (§5.2). */
const deadlineFactors = [1, 2] as const;
const noises = Object.keys(workSigmas) as InputNoise[];
const inputsText = { alike: 'inputs alike', any: 'inputs of any size' } as const satisfies Record<
  InputNoise,
  string
>;

interface Told {
  readonly missed: number;
  readonly runs: number;
  readonly latency: number;
  readonly lateBy: number;
  readonly above: number;
  readonly aboveOfRunTime: number;
  readonly medianSlots: number;
}

function told(runs: readonly JudgedRun[]): Told {
  const late = runs.filter(({ met }) => !met);
  return {
    missed: late.length,
    runs: runs.length,
    latency:
      quantile(
        runs.map(({ latency }) => latency).toSorted((a, b) => a - b),
        0.5,
      ) ?? 0,
    lateBy:
      quantile(
        late.map(({ latency }) => latency).toSorted((a, b) => a - b),
        0.5,
      ) ?? 0,
    above: mean(runs.map(({ above }) => above)) ?? 0,
    aboveOfRunTime: mean(runs.map(({ aboveOfRunTime }) => aboveOfRunTime)) ?? 0,
    medianSlots: mean(runs.map(({ medianSlots }) => medianSlots)) ?? 0,
  };
}

type Found = ReadonlyMap<PolicyName, Told>;

/** What Jockey asks for above the oracle, by slots that are held and by run time alone. */
const aboveOracle = (jockey: Told, ours: Told, what: (text: string) => string): Check[] => [
  claim(what('what Jockey asks for above the oracle'), {
    ...{ paper: '25 %', got: `jockey ${jockey.above.toFixed(1)} %`, rule: `at most ${mostAbove} %` },
    ...{ kind: 'value', ok: jockey.above <= mostAbove },
  }),
  claim(what('what Jockey asks for above the oracle of run time alone'), {
    paper: '25 %',
    got: `${jockey.aboveOfRunTime.toFixed(1)} %, outrider ${ours.aboveOfRunTime.toFixed(1)} %`,
    ...{ rule: `at most ${mostAbove} %`, kind: 'value', ok: jockey.aboveOfRunTime <= mostAbove },
  }),
];

/** What is claimed of runs under one noise. */
function checksOf(found: Found, inputs: InputNoise): Check[] {
  const of = (name: PolicyName): Told => found.get(name) ?? told([]);
  const share = (name: PolicyName): number => of(name).missed / Math.max(1, of(name).runs);
  const missed = (name: PolicyName): string => `${name} ${of(name).missed} of ${of(name).runs}`;
  const above = (name: PolicyName): string => `${name} ${of(name).above.toFixed(1)} %`;
  const [jockey, once, amdahl, most] = [
    'jockey',
    'without adaptation',
    'without simulator',
    'max allocation',
  ] as const;
  const what = (text: string): string => `${text}, ${inputsText[inputs]}`;
  return [
    claim(what('deadlines that Jockey missed'), {
      ...{ paper: '1 of 94', got: missed(jockey), rule: 'at most 1 of 94', kind: 'value' },
      ok: share(jockey) <= paperMissed,
    }),
    ...aboveOracle(of(jockey), of('outrider'), what),
    claim(what('deadlines missed without adaptation and without the simulator'), {
      paper: '18 % and 16 %',
      got: [jockey, once, amdahl].map(missed).join(', '),
      rule: 'each misses more than Jockey',
      ok: share(once) > share(jockey) && share(amdahl) > share(jockey),
    }),
    claim(what('max allocation'), {
      paper: 'misses none, ends 70 % early, asks for about three times as much above the oracle',
      got: `${missed(most)}, ${of(most).latency.toFixed(0)} %, ${above(most)} against ${above(jockey)}`,
      rule: 'misses none, ends earliest, and asks for at least twice as much above the oracle',
      ok:
        of(most).missed === 0 &&
        names.every((name) => of(name).latency >= of(most).latency) &&
        of(most).above >= 2 * of(jockey).above,
    }),
    claim(what('what policies ask for above the oracle'), {
      paper: 'without simulator < Jockey < without adaptation < max allocation',
      got: [amdahl, jockey, once, most].map(above).join(', '),
      rule: 'in that order',
      ok:
        of(amdahl).above < of(jockey).above &&
        of(jockey).above < of(once).above &&
        of(once).above < of(most).above,
      kind: 'side',
    }),
    claim(what("Outrider's own setting"), {
      paper: 'none of its own: no miss, at most 25 % above the oracle, is the aim',
      got: `${missed('outrider')}, ${above('outrider')}`,
      rule: `misses none, at most ${ourMostAbove} % above`,
      ok: of('outrider').missed === 0 && of('outrider').above <= ourMostAbove,
      kind: 'side',
    }),
  ];
}

/** Each policy in the same runs of every job under both deadlines, by noise. */
async function runsOf(seeds: readonly string[]): Promise<ReadonlyMap<InputNoise, Found>> {
  const found = new Map(
    noises.map((inputs) => [inputs, new Map<PolicyName, JudgedRun[]>(names.map((name) => [name, []]))]),
  );
  for (const seed of seeds) {
    for (const name of jockeyJobNames) {
      const rng = createRng(`jockey-slo/${seed}/${name}`);
      const job = await prepare(name, rng);
      for (const [inputs, runs] of found) {
        for (const factor of deadlineFactors) {
          const own = rng.fork(`run of ${factor}`);
          const noise = drawNoise(own.fork('noise'), inputs);
          const judged = { ...job, deadlineMs: factor * job.deadlineMs };
          // Each policy meets the same run.
          for (const policy of names)
            runs.get(policy)?.push(await judge(judged, policies[policy], { rng: own.fork('judged'), noise }));
        }
      }
    }
  }
  return new Map(
    [...found].map(([inputs, runs]) => [
      inputs,
      new Map([...runs].map(([policy, each]) => [policy, told(each)])),
    ]),
  );
}

async function run({ seeds }: ExperimentInput): Promise<Findings> {
  const rows: Row[] = [];
  const checks: Check[] = [];
  for (const [inputs, found] of await runsOf(seeds)) {
    checks.push(...checksOf(found, inputs));
    for (const [policy, each] of found)
      rows.push({
        ...{ policy, inputs, runs: each.runs, missed: each.missed },
        missedPercent: rounded((100 * each.missed) / Math.max(1, each.runs)),
        medianLatencyPercent: rounded(each.latency),
        medianLateByPercent: each.missed === 0 ? null : rounded(each.lateBy),
        aboveOraclePercent: rounded(each.above),
        aboveOracleOfRunTimePercent: rounded(each.aboveOfRunTime),
        meanMedianSlots: rounded(each.medianSlots),
      });
  }
  return { rows, checks };
}

/**
 * Whether jobs meet their deadlines, and on how many slots: the seven jobs, each learned from a training run of its own,
 * under a deadline and one twice as long, in runs with up to twice the work and longer queueing, under Jockey's control,
 * its variants, and ours; by production's scheduler and ledger. Work varies as Table 1 has it for runs on inputs alike,
 * which is what the paper's experiments were, and for those on inputs of any size.
 *
 * Source: Jockey, §5.2 and Fig. 4.
 */
export const jockeySlo: Experiment = {
  name: 'jockey-slo',
  title: 'deadlines met by control of slots, and what is asked for above the oracle',
  source: 'Jockey, §5.2, Fig. 4',
  defaultSeeds: 8,
  traces: [],
  run,
};
