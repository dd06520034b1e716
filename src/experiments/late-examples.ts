import type { PolicyName } from '../contracts/policy-names.ts';
import { meanPhaseMs, phaseAwareTimeLeftMs, phaseTimesOf } from '../core/estimate/phase-aware.ts';
import { timeLeftMs } from '../core/estimate/progress-rate.ts';
import { phasedScore } from './phased-score.ts';
import { nodeProgress, slowNodes } from '../core/policy/late/slow-node-threshold.ts';
import { policySetOf } from '../core/policy/policy-sets.ts';
import { completionMsOf } from '../sim/metrics.ts';
import { parseScenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import { derived, exactly, same } from './checks.ts';
import { type Check, type Experiment, type Findings, type Row, rounded } from './experiment.ts';
import { snapshotOf, type TaskMoment } from './stage-snapshot.ts';

const minuteMs = 60_000;

/** Places of the tasks that a policy would copy, best first. */
function copied(policy: PolicyName, tasks: readonly TaskMoment[]): readonly number[] {
  const proposals = policySetOf(policy).propose(snapshotOf(tasks, { freeSlots: tasks.length }));
  return proposals
    .filter(({ kind }) => kind === 'backup')
    .toSorted((a, b) => b.gainMs - a.gainMs || a.task.index - b.task.index)
    .map(({ task }) => task.index);
}

const repeat = (count: number, task: TaskMoment): TaskMoment[] => Array.from({ length: count }, () => task);

/** LATE §2: the score of a reducer. */
const scores = (): Check[] => [
  exactly('score of a reducer half-way through copy', 1 / 6, phasedScore(0, 0.5)),
  exactly('score of a reducer half-way through reduce', 5 / 6, phasedScore(2, 0.5)),
];

/** LATE §3.2: what Hadoop's fixed threshold sees. `finished` of a hundred reducers are done, the rest have copied. */
function nativeFlags(finished: number): number {
  const ranMs = 2 * minuteMs;
  const rest = { ranMs, score: phasedScore(1, 0) };
  return copied('hadoop', [
    ...repeat(finished, { ranMs, score: 1, isDone: true }),
    ...repeat(100 - finished, rest),
  ]).length;
}

function nativeChecks(): Check[] {
  const ranMs = 10 * minuteMs;
  const late = (score: number): number =>
    copied('hadoop', [...repeat(99, { ranMs, score: 1, isDone: true }), { ranMs, score }]).length;
  const atSeventy = [{ ranMs, score: 0.35 }, { ranMs, score: 0.07 }, ...repeat(8, { ranMs, score: 0.8225 })];
  const equal = policySetOf('hadoop')
    .propose(snapshotOf(atSeventy, { freeSlots: 10 }))
    .map(({ task, gainMs }) => `${task.index}:${gainMs}`);
  return [
    derived(exactly('native: of 100 reducers with 30 done, flagged in copy', 0, nativeFlags(30))),
    exactly('native: of 100 reducers with 31 done, flagged in copy', 69, nativeFlags(31)),
    exactly('native: flagged at a score of 0.8, all others done', 0, late(0.8)),
    exactly('native: flagged at a score of 0.75, all others done', 1, late(0.75)),
    same(
      'native at a mean of 70 %: the 2× slower task and the 10× slower one rank equal',
      '0:0 1:0',
      equal.join(' '),
    ),
  ];
}

/** LATE §4.2: +5 %/s to half, then +1 %/s; T1 began at 0, T2 at 10; now it is 20. */
function estimates(): { readonly checks: Check[]; readonly rows: Row[] } {
  const ends = [0.5, 1];
  const at = (ranMs: number, percent: number): { workedMs: number; bytesRead: number } => ({
    workedMs: ranMs,
    bytesRead: percent,
  });
  const first = phaseTimesOf([at(10_000, 50), at(20_000, 60)], { bytesTotal: 100, ranMs: 20_000 }, ends);
  const second = phaseTimesOf([at(5_000, 25), at(10_000, 50)], { bytesTotal: 100, ranMs: 10_000 }, ends);
  const means = meanPhaseMs([first, second], ends.length);
  const seconds = (ms: number | undefined): number => (ms ?? Number.NaN) / 1_000;
  const plain = [timeLeftMs(0.6, 20_000), timeLeftMs(0.5, 10_000)].map(seconds);
  const phased = [phaseAwareTimeLeftMs(first, means), phaseAwareTimeLeftMs(second, means)].map(seconds);
  const truth = [40, 50];
  return {
    checks: [
      exactly("two phases: LATE's estimate of T1, s", 40 / 3, plain[0]),
      exactly("two phases: LATE's estimate of T2, s", 10, plain[1]),
      derived(exactly('two phases: phase-aware estimate of T1, s', 40, phased[0])),
      derived(exactly('two phases: phase-aware estimate of T2, s', 50, phased[1])),
    ],
    rows: truth.map((truthS, index) => ({
      example: `two phases, T${index + 1}`,
      estimateS: rounded(plain[index] ?? 0),
      phaseAwareS: rounded(phased[index] ?? 0),
      truthS,
    })),
  };
}

/** LATE §4.1: A runs at a fifth of the mean rate and is 90 % done, B at half of it and 10 %. One task takes 1,000 s. */
function firstCopied(): Check {
  const wholeMs = 1_000_000;
  const tasks = [
    { ranMs: 5 * 0.9 * wholeMs, score: 0.9 },
    { ranMs: 2 * 0.1 * wholeMs, score: 0.1 },
    ...repeat(10, { ranMs: wholeMs, score: 1, isDone: true }),
  ];
  const [first] = copied('late', tasks);
  return same(
    'A is 90 % done at a fifth of the rate, B 10 % at half: copied first',
    'B',
    first === 1 ? 'B' : 'A',
  );
}

/** LATE §5.4.3: ten fast nodes (1 min a task), X (2.9), Y (10), one slot each, 32 tasks. Minutes. */
async function slowNodeMinutes(policy: PolicyName, slowNodeThreshold: number): Promise<number> {
  const scenario = parseScenario({
    name: 'slow-node',
    cluster: {
      placement: 'in-order',
      nodes: [{ count: 10 }, { count: 1, speed: 1 / 2.9 }, { count: 1, speed: 0.1 }],
    },
    scheduler: { tickMs: 1_000, wakeOnEnd: true, cancel: 'immediate' },
    reports: { everyMs: 1_000, tenths: false },
    jobs: [
      {
        policy,
        policyConfig: { late: { slowNodeThreshold } },
        stages: [{ name: 'map', tasks: 32, workMs: minuteMs }],
      },
    ],
  });
  const { jobs } = await simulate(scenario, { seed: 'exact' });
  return jobs.reduce((sum, job) => sum + completionMsOf(job), 0) / minuteMs;
}

/** Node progress at 2.9 min: what X and Y are refused by. */
function nodeChecks(): Check[] {
  const ranMs = 0.9 * minuteMs;
  const view = snapshotOf(
    [
      ...repeat(10, { ranMs, score: 0.9 }),
      { ranMs: 2.9 * minuteMs, score: 1, isDone: true },
      { ranMs: 2.9 * minuteMs, score: 0.29 },
    ],
    { freeSlots: 1 },
  );
  // Each fast node has done two tasks before.
  for (const [id, node] of view.state.nodes) if (Number(id.slice(5)) < 10) node.won += 2;
  const progress = nodeProgress(view);
  return [
    exactly('progress of a fast node at 2.9 min', 2.9, progress.get('node-0')),
    exactly('of X', 1, progress.get('node-10')),
    derived(exactly('of Y', 0.29, progress.get('node-11'))),
    same(
      'nodes refused at the 25th percentile',
      'Y X',
      slowNodes(view, 0.25)
        .map((id) => (id === 'node-11' ? 'Y' : 'X'))
        .join(' '),
    ),
  ];
}

async function run(): Promise<Findings> {
  const [none, without, withThreshold] = [
    await slowNodeMinutes('none', 0.25),
    await slowNodeMinutes('late', 0),
    await slowNodeMinutes('late', 0.25),
  ];
  const { checks, rows } = estimates();
  return {
    rows: [
      ...rows,
      { example: 'slow node, no copies', minutes: none },
      { example: 'slow node, copy on X', minutes: without },
      { example: 'slow node, X refused', minutes: withThreshold },
    ],
    checks: [
      ...scores(),
      ...nativeChecks(),
      ...checks,
      firstCopied(),
      ...nodeChecks(),
      exactly('slow node: end without the threshold, min', 5.8, without),
      exactly('slow node: end with it, min', 4, withThreshold),
      exactly(
        'slow node: faster with it by',
        0.45,
        withThreshold === 0 ? undefined : without / withThreshold - 1,
      ),
    ],
  };
}

/**
 * The worked examples of LATE, exactly.
 *
 * Source: LATE §2, §3.2, §4.1, §4.2 (Fig. 2), §5.4.3.
 */
export const lateExamples: Experiment = {
  name: 'late-examples',
  title: "LATE: scores, native's blind spots, two phases, A and B, the slow node",
  source: 'LATE §2 to §4, §5.4.3',
  defaultSeeds: 1,
  traces: [],
  host: 'hadoop',
  run,
};
