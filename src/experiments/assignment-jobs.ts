import { mean, median } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import { completionMsOf } from '../sim/metrics.ts';
import type { JobOutcome } from '../sim/outcome.ts';
import { parseScenario, type Scenario, type ScenarioInput } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import type { TimedJob } from '../traces/generators/work.ts';
import { leastTelling, slowdown, stragglerShare } from './facebook-calibration.ts';

/** Who reads what of cloned outputs; `LATE`: nothing is cloned. */
export const strategies = ['LATE', 'CAC', 'CC', 'delay'] as const;
export type Strategy = (typeof strategies)[number];
export const patterns = ['all-to-all', 'many-to-one', 'one-to-one'] as const;
export type Pattern = (typeof patterns)[number];

/** The paper's cluster: 150 machines of 12 slots, 1 Gb/s each, full bisection. */
export const cluster = { machines: 150, slotsPerMachine: 12, linkBytesPerS: 125e6 } as const;

/** Of the jobs of a seed the first, which only teach ω, are not counted. */
const teachingShare = 0.25;
/** In many-to-one, tasks of a phase for each of the next one. */
const fanIn = 3;
/** Jobs follow each other so closely that a few of them run at a time. */
const apartMsPerPhase = 30_000;

/** The same jobs, whatever the strategy. */
export interface Setting {
  readonly pattern: Pattern;
  readonly phases: number;
  /** Share of the machines' links that other jobs leave to these. */
  readonly linkShare: number;
  /** Tasks of a job's first phase. */
  readonly tasks: { readonly least: number; readonly most: number };
  /** Jobs of one seed. */
  readonly jobs: number;
}

/** The trace's jobs of a setting, as many as it wants, in an order by the seed. */
function chosen(trace: readonly TimedJob[], { tasks, jobs }: Setting, seed: string): readonly TimedJob[] {
  const rng = createRng(`assignment/${seed}`);
  return trace
    .filter(({ stages }) => {
      const count = stages[0]?.tasks.length ?? 0;
      return count >= Math.max(leastTelling, tasks.least) && count <= tasks.most;
    })
    .map((job) => ({ job, place: rng.next() }))
    .sort((a, b) => a.place - b.place)
    .slice(0, jobs)
    .map(({ job }) => job);
}

type StageInput = ScenarioInput['jobs'][number]['stages'][number];

/** A chain of phases, each with the maps' work and data: every phase hands all that it reads on to the next. */
function chainOf({ stages }: TimedJob, { pattern, phases }: Setting): StageInput[] {
  const maps = stages[0]?.tasks ?? [];
  return Array.from({ length: phases }, (_, phase): StageInput => {
    const tasks = pattern === 'many-to-one' ? Math.ceil(maps.length / fanIn ** phase) : maps.length;
    const bytes = maps.map(({ inputBytes = 0 }) => inputBytes);
    return {
      name: `phase-${phase}`,
      tasks,
      upstream: phase === 0 ? [] : [`phase-${phase - 1}`],
      ...(phase === 0 ? {} : { pattern }),
      network: phase > 0,
      workMs: maps.map(({ workMs }) => workMs),
      inputBytes: bytes,
      outputBytes: bytes,
      slowdown,
    };
  });
}

function scenarioOf(jobs: readonly TimedJob[], setting: Setting, strategy: Strategy): Scenario {
  const linkBytesPerS = cluster.linkBytesPerS * setting.linkShare;
  return parseScenario({
    name: 'dolly-assignment',
    cluster: {
      nodes: [{ count: cluster.machines, slots: cluster.slotsPerMachine }],
      nodeLinks: { upBytesPerS: linkBytesPerS, downBytesPerS: linkBytesPerS },
    },
    scheduler: { tickMs: 500, wakeOnEnd: true, cancel: 'immediate' },
    reports: { everyMs: 10_000, tenths: false },
    jobs: jobs.map((job, place) => ({
      policy: strategy === 'LATE' ? 'late' : 'dolly',
      policyConfig: {
        dolly: {
          priorStragglerProbability: stragglerShare,
          assignment: strategy === 'CC' ? 'cc' : strategy === 'CAC' ? 'cac' : 'delay',
        },
      },
      arrivals: { kind: 'list', atMs: [place * apartMsPerPhase * setting.phases] },
      stages: chainOf(job, setting),
    })),
  });
}

/** What one strategy made of the jobs of a setting and a seed. */
export interface AssignmentRun {
  readonly meanS: number;
  /** Share of the counted jobs that were cloned in every phase. */
  readonly clonedShare: number;
  /** Median ω of the counted jobs in seconds; undefined without any. */
  readonly waitS: number | undefined;
  readonly utilization: number;
}

const waitMsOf = ({ stages }: JobOutcome): number[] => stages.flatMap(({ clones }) => clones?.waitMs ?? []);

/** Runs production's scheduler on the jobs of a setting, read times by the links of the machines that hold the copies. */
export async function runAssignment(
  trace: readonly TimedJob[],
  setting: Setting,
  strategy: Strategy,
  seed: string,
): Promise<AssignmentRun> {
  const jobs = chosen(trace, setting, seed);
  const { jobs: outcomes, endedAtMs } = await simulate(scenarioOf(jobs, setting, strategy), { seed });
  const counted = outcomes.slice(Math.floor(jobs.length * teachingShare));
  const slotMs = cluster.machines * cluster.slotsPerMachine * Math.max(1, endedAtMs);
  const busyMs = outcomes
    .flatMap(({ attempts }) => attempts)
    .reduce((sum, { takenAtMs, leftAtMs }) => sum + leftAtMs - takenAtMs, 0);
  const waits = median(counted.flatMap(waitMsOf));
  return {
    meanS: mean(counted.map((job) => completionMsOf(job) / 1_000)) ?? 0,
    clonedShare:
      counted.filter(({ stages }) => stages.every(({ clones }) => clones !== undefined)).length /
      Math.max(1, counted.length),
    waitS: waits === undefined ? undefined : waits / 1_000,
    utilization: busyMs / slotMs,
  };
}
