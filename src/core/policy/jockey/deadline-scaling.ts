import type { PolicyConfig } from '../../../contracts/policy-config.ts';
import type { RemainingStatistic } from '../../../contracts/forecast.ts';

/** The jobs' usual deadline in the paper, for which its times hold. */
const hourMs = 3_600_000;
/** No loop runs more often: a tick's length. */
const leastPeriodMs = 1_000;

interface Preset {
  readonly statistic: RemainingStatistic;
  readonly slack: number;
  /** α where slots are added, and where they are given back. */
  readonly hysteresis: number;
  readonly release: number;
  readonly deadZoneMs: number;
  /** Whether slots are added only to a job that is foretold to end a dead zone later than it is steered to. */
  readonly holdsInDeadZone: boolean;
  readonly periodMs: number;
  readonly correct: boolean;
  /** Standard deviations by which work is taken for more than it seems to be, as far as it is not known still. */
  readonly caution: number;
  /** Whether a job asks for no more slots than it has tasks left. */
  readonly frugal: boolean;
}

/**
 * Jockey (EuroSys 2012), §4.3 and §5.1. Two things are our reading: the statistic, and that the dead zone only shifts the
 * utility. "Change allocations only if the job is at least D behind schedule" would forbid releases as well, of which
 * Fig. 6 and 7 are full; held for raises alone it steers a late job to the deadline itself, with nothing left for its
 * last tasks (`holdsInDeadZone`; `jockey-slo` shows both).
 */
const paper: Preset = {
  statistic: 'worst',
  slack: 1.2,
  hysteresis: 0.2,
  release: 0.2,
  deadZoneMs: 180_000,
  holdsInDeadZone: false,
  periodMs: 60_000,
  correct: false,
  caution: 0,
  frugal: false,
};

/**
 * Predictions are corrected as the job goes on, and slack is what is not known: much at the begin, little once tasks have
 * told how this run compares. Slots are added at once, since time that is lost late cannot be made good on any number of
 * slots, and given back more slowly.
 */
const ours: Preset = {
  statistic: 'most',
  slack: 1.2,
  hysteresis: 1,
  release: 0.5,
  deadZoneMs: 180_000,
  holdsInDeadZone: false,
  periodMs: 60_000,
  correct: true,
  caution: 1,
  frugal: true,
};

/** How slots are controlled under one deadline. */
export interface ControlTerms extends Omit<Preset, 'holdsInDeadZone'> {
  /** How much later than a dead zone before its deadline a job may be foretold to end until slots are added. */
  readonly toleranceMs: number;
  /** How late a job may be until its utility has fallen from 1 to −1. */
  readonly lateMs: number;
}

/**
 * The settings of a job's control loop under its deadline. The paper's period, dead zone and decline of utility are for
 * deadlines of an hour: shorter ones have as large a share of theirs (a 60th, a 20th and a 6th), longer ones the same.
 * The period is never below a second; where it is longer than a share of the deadline, as much more of the way is gone
 * with each step, so that the loop comes as near in the same part of the job.
 *
 * @param deadlineMs - from the job's begin.
 */
export function controlTerms(config: PolicyConfig['jockey'], deadlineMs: number): ControlTerms {
  const preset = config.preset === 'paper' ? paper : ours;
  const {
    statistic = preset.statistic,
    slack = preset.slack,
    hysteresis = preset.hysteresis,
    deadZoneMs = preset.deadZoneMs,
    periodMs = preset.periodMs,
    correct = preset.correct,
    holdsInDeadZone = preset.holdsInDeadZone,
  } = config;
  const scale = Math.min(1, Math.max(0, deadlineMs) / hourMs);
  const scaledMs = periodMs * scale;
  const period = Math.max(Math.min(leastPeriodMs, periodMs), scaledMs);
  const steps = scaledMs <= 0 ? 1 : period / scaledMs;
  const faster = (share: number): number => 1 - (1 - share) ** steps;
  // Who sets one α means it for both ways.
  const { hysteresis: release = preset.release } = config;
  return {
    ...{ statistic, slack, correct, caution: preset.caution, frugal: preset.frugal },
    hysteresis: faster(hysteresis),
    release: faster(release),
    deadZoneMs: deadZoneMs * scale,
    toleranceMs: holdsInDeadZone ? deadZoneMs * scale : 0,
    periodMs: period,
    lateMs: Math.max(1, (hourMs / 6) * scale),
  };
}
