import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import type { ProgressIndicatorName } from '../core/forecast/progress-indicators.ts';
import { mean } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import { jockeyJobNames } from '../traces/generators/jockey-jobs.ts';
import { claim } from './checks.ts';
import { type Check, type Experiment, type ExperimentInput, type Findings, rounded } from './experiment.ts';
import { drawNoise, type JockeyJob, judge, type JudgedRun, prepare, withTable } from './jockey-runs.ts';

interface Variant {
  readonly setting: NonNullable<PolicyConfigInput['jockey']>;
  readonly indicator?: ProgressIndicatorName;
  /** The deadline ten minutes into the job, over the one before. */
  readonly change?: number;
}

const variant = (setting: Variant['setting'], others: Omit<Variant, 'setting'> = {}): Variant => ({
  setting: { preset: 'paper', ...setting },
  ...others,
});
/** Fig. 11, 12 and 13, and the changes of deadlines of §5.2. */
const variants = new Map<string, Variant>([
  ['baseline', variant({})],
  ['no hysteresis, no dead zone', variant({ hysteresis: 1, deadZoneMs: 0 })],
  ['no dead zone', variant({ deadZoneMs: 0 })],
  ['raises held in the dead zone', variant({ holdsInDeadZone: true })],
  ['no slack, less hysteresis', variant({ slack: 1, hysteresis: 0.4 })],
  ['5-min period', variant({ periodMs: 300_000 })],
  ['minstage', variant({}, { indicator: 'minstage' })],
  ['CP', variant({}, { indicator: 'cp' })],
  ...[1, 1.1, 1.4, 1.6].map((slack) => [`slack ${slack}`, variant({ slack })] as const),
  ...[0.05, 0.4, 1].map((hysteresis) => [`hysteresis ${hysteresis}`, variant({ hysteresis })] as const),
  ['deadline halved', variant({}, { change: 0.5 })],
  ['deadline doubled', variant({}, { change: 2 })],
  ['deadline tripled', variant({}, { change: 3 })],
]);
/** Deadlines are changed so long into the job. */
const changeAtMs = 600_000;
/** Work of runs in which a deadline is halved: a half of it must still be feasible. */
const changedWork = 1;

/** The job with a deadline that can be halved: half of it is met on all slots. */
const easier = (job: JockeyJob): JockeyJob => ({ ...job, deadlineMs: job.deadlineMs * 1.5 });

async function runsOf(seeds: readonly string[]): Promise<Map<string, JudgedRun[]>> {
  const found = new Map<string, JudgedRun[]>([...variants.keys()].map((name) => [name, []]));
  for (const seed of seeds) {
    for (const name of jockeyJobNames) {
      const rng = createRng(`jockey-sensitivity/${seed}/${name}`);
      const job = await prepare(name, rng);
      const noise = drawNoise(rng.fork('noise'));
      for (const [label, { setting, indicator, change }] of variants) {
        const forecast =
          indicator === undefined ? job.forecast : withTable(job.forecast, indicator, rng.fork(indicator));
        const judged = { ...(change === undefined ? job : easier(job)), forecast };
        const options =
          change === undefined
            ? { rng: rng.fork('judged'), noise }
            : {
                rng: rng.fork('judged'),
                noise: { ...noise, work: changedWork },
                change: { atMs: changeAtMs, factor: change },
              };
        found.get(label)?.push(await judge(judged, setting, options));
      }
    }
  }
  return found;
}

type Figure = 'latency' | 'above' | 'firstSlots' | 'medianSlots' | 'mostSlots';

function checksOf(found: ReadonlyMap<string, readonly JudgedRun[]>): Check[] {
  const of = (label: string): readonly JudgedRun[] => found.get(label) ?? [];
  const figure = (label: string, name: Figure): number => mean(of(label).map((run) => run[name])) ?? 0;
  const missed = (label: string): number => of(label).filter(({ met }) => !met).length;
  const changeOf = (label: string): number =>
    (mean(of(label).map(({ before, after }) => after / Math.max(1, before))) ?? 1) * 100 - 100;
  const change = (label: string, paper: number): Check =>
    claim(`${label} ten minutes into the job`, {
      paper: `met by all, ${paper} % slots`,
      got: `${of(label).length - missed(label)} of ${of(label).length} met, ${changeOf(label).toFixed(0)} % slots`,
      rule: 'all met, in that direction and by at least a third of that',
      ok: missed(label) === 0 && changeOf(label) / paper >= 1 / 3,
    });
  const noLoop = 'no hysteresis, no dead zone';
  return [
    claim('without hysteresis and dead zone', {
      paper: '57 % met, against 95 %; nearest to the deadline',
      got: `${missed(noLoop)} missed, against ${missed('baseline')}; ${figure(noLoop, 'latency').toFixed(1)} %, against ${figure('baseline', 'latency').toFixed(1)} %`,
      rule: 'misses at least as many, and ends later',
      ok: missed(noLoop) >= missed('baseline') && figure(noLoop, 'latency') > figure('baseline', 'latency'),
    }),
    claim('slack', {
      paper: 'more of it: an earlier end, a larger first allocation, more above the oracle',
      got: [1, 1.4, 1.6]
        .map((each) => `${each}: ${figure(`slack ${each}`, 'latency').toFixed(1)} %`)
        .join(', '),
      rule: 'slack 1.6 ends earlier than 1, begins with more, and asks for more above the oracle',
      ok:
        figure('slack 1.6', 'latency') < figure('slack 1', 'latency') &&
        figure('slack 1.6', 'firstSlots') > figure('slack 1', 'firstSlots') &&
        figure('slack 1.6', 'above') > figure('slack 1', 'above'),
    }),
    claim('hysteresis', {
      paper: 'more of the way in a step: nearer to the deadline, with a much higher largest allocation',
      got: [0.05, 0.4, 1]
        .map((each) => `${each}: ${figure(`hysteresis ${each}`, 'mostSlots').toFixed(1)}`)
        .join(', '),
      rule: 'the largest allocation at 1 is above that at 0.05',
      ok: figure('hysteresis 1', 'mostSlots') > figure('hysteresis 0.05', 'mostSlots'),
    }),
    change('deadline halved', 148),
    change('deadline doubled', -63),
    change('deadline tripled', -83),
  ];
}

async function run({ seeds }: ExperimentInput): Promise<Findings> {
  const found = await runsOf(seeds);
  const rows = [...found].map(([label, runs]) => {
    const of = (name: Figure | 'before' | 'after'): number =>
      rounded(mean(runs.map((each) => each[name])) ?? 0);
    return {
      variant: label,
      runs: runs.length,
      met: runs.filter(({ met }) => met).length,
      latencyPercent: of('latency'),
      aboveOraclePercent: of('above'),
      firstSlots: of('firstSlots'),
      medianSlots: of('medianSlots'),
      mostSlots: of('mostSlots'),
      slotsBefore: of('before'),
      slotsAfter: of('after'),
    };
  });
  return { rows, checks: checksOf(found) };
}

/**
 * How much the control loop hangs on its settings, and what changes of deadlines do: the seven jobs under each setting,
 * each in the same runs, by production's scheduler and ledger.
 *
 * Source: Jockey, §5.2, §5.5, Fig. 11 to 13.
 */
export const jockeySensitivity: Experiment = {
  name: 'jockey-sensitivity',
  title: 'settings of the control loop one by one, and deadlines that change',
  source: 'Jockey, §5.5, Fig. 11-13',
  defaultSeeds: 3,
  traces: [],
  run,
};
