import type { FactName } from '../../contracts/fact-names.ts';
import { ownValue } from '../../lib/own.ts';
import { formatBytes, formatCount, formatDollars, formatDuration, plural } from '../format.ts';

type Numbers = Readonly<Record<string, number>>;

/** `#` stands for the number; a function tells it by itself, by those beside it; `untold`: it is for programs alone. */
type Wording = string | ((value: number, beside: Numbers) => string);
const untold = '';

const counted =
  (one: string, many = `${one}s`, after = ''): Wording =>
  (value) =>
    `${plural(value, one, many)}${after}`;

const least = 1e-4;
/** A probability, or another share of a whole, by its first two digits. */
const percent = (value: number): string =>
  value > 0 && value < least ? 'less than 0.01 %' : `${String(Number((value * 100).toPrecision(2)))} %`;
const share =
  (text: string): Wording =>
  (value) =>
    text.replace('#', percent(value));

/** How a number that a decision went by is told, in its phrase. */
const wordings: Readonly<Record<FactName, Wording>> = {
  remMs: '# left to run',
  leftMs: '# left to run',
  leastRemMs: 'at least # of that',
  firstRemMs: '# for the one that is ahead',
  newMs: '# for a new attempt',
  savedMs: '# to be saved',
  // What a copy takes of its slots' time beyond what it saves: less than nothing is a gain.
  extraMs: (ms) =>
    ms <= 0 ? `${formatDuration(-ms)} of slot time gained` : `${formatDuration(ms)} of slot time more`,
  deltaMs: untold,
  ranMs: '# run so far',
  sinceLaunchMs: '# since its launch',
  sinceCopyMs: '# since its last launch',
  // Of a task that is weighed, those that run; else those that each task of a cloned stage is to have.
  copies: (value, beside) =>
    Object.hasOwn(beside, 'remMs')
      ? `${plural(value, 'attempt')} at work`
      : `${plural(value, 'copy', 'copies')} of each task`,
  restarts: counted('restart', 'restarts', ' before'),
  probability: (value, beside) =>
    Object.hasOwn(beside, 'raw')
      ? `a chance of ${percent(value)} to meet it`
      : `a chance of ${percent(value)} that a copy saves slot time`,
  lossLeftMs: '# that the stage may still lose',
  slownessForInput: '# times the usual for its input',
  recordFactor: '# times the usual number of records in each byte',
  inputBytes: '# to read',
  medianMs: '# in the median',
  middleMs: '# in the median',
  thresholdMs: 'slow from # on',
  limitMs: 'slow from # on',
  baselineMs: 'slow from # on',
  score: share('# of the way'),
  meanScore: share('# in the mean of its stage'),
  ratePerS: share('# of the way in a second'),
  slowRatePerS: share('slow below #'),
  doneFraction: share('# of its stage done'),
  locationFactor: 'its zone # times as slow as where the others ran',
  zoneSamples: counted('run', 'runs', ' there'),
  zoneSamplesOfOthers: counted('run', 'runs', ' of other jobs there'),
  crossingBytes: '# between zones',
  spreadBytes: '# if tasks were anywhere',
  slowestLinkBytes: '# over the link between zones that carries most',
  lambdaMs: 'at most # on Lambda',
  lambdaLeftMs: '# of that to come',
  forecastMs: '# foretold',
  ended: counted('task', 'tasks', ' seen to end'),
  timedOutBytes: 'one with # to read ran out of time',
  earlierMs: '# or more for most tasks of earlier runs',
  // Of an output that is to be copied, its own; else what a partition has.
  bytes: (value, beside) => `${formatBytes(value)} ${Object.hasOwn(beside, 'copyMs') ? 'in it' : 'to read'}`,
  usualBytes: '# usual in its stage',
  largestPartBytes: '# in the largest part',
  stragglerProbability: share('# of attempts taken to straggle'),
  tasks: counted('task'),
  copiesWanted: (value) => `${formatCount(value)} by the rule`,
  copiesSeen: counted('attempt', 'attempts', ' seen to end of late'),
  copiesNeeded: '# needed to tell how many straggle',
  waitMs: 'clones that read clones wait for them up to #',
  chargedSlots: counted('slot', 'slots', ' charged to clones'),
  totalSlots: counted('slot', 'slots', ' in all'),
  usedSlots: '# in use',
  cloneSlots: '# charged to other clones',
  reservedSlots: '# kept for others',
  preemptedPhases: counted('stage', 'stages', ' robbed of clones'),
  preemptedSlots: '# of their slots',
  jobTasks: counted('task', 'tasks', ' here'),
  byTasks: '# there',
  slots: counted('slot'),
  raw: '# before that was smoothed',
  guaranteed: '# granted',
  needed: counted('slot', 'slots', ' needed'),
  workFactor: '# times the work that was foretold',
  finishedTasks: (value) => `by ${plural(value, 'task')} that ended`,
  budgetDollars: 'a budget of #',
  spentDollars: '# spent',
  runningDollars: '# for what runs',
  owedDollars: '# for what is owed',
  attemptDollars: '# for one attempt more',
  lossProbability: share('a chance of # to be lost'),
  redoMs: '# to make it again',
  lossCostMs: '# lost in the mean',
  copyMs: '# to copy it',
  spellLeftMs: '# left for copies beside lost outputs',
  tokens: (value) => `${formatBytes(value)} that may be copied`,
};

/** Numbers that are not a decision's, and are logged beside it. */
const logged: Readonly<Record<string, Wording>> = {
  parts: counted('part'),
  epoch: untold,
  version: untold,
  attempts: untold,
  riding: untold,
};

const decimals = 100;

function valueText(name: string, value: number): string {
  if (name.endsWith('Ms')) return formatDuration(value);
  if (name.endsWith('Bytes') || name === 'bytes') return formatBytes(value);
  if (name.endsWith('Dollars')) return formatDollars(value);
  return Number.isInteger(value) ? formatCount(value) : String(Math.round(value * decimals) / decimals);
}

const wordingOf = (name: string): Wording | undefined =>
  ownValue<Wording>(wordings, name) ?? ownValue(logged, name);

/**
 * The numbers of a decision as one phrase, in their order; empty for none. What has no words, as another version may have
 * logged it, is told by its name.
 */
export function factsText(facts: Numbers): string {
  return Object.entries(facts)
    .map(([name, value]) => {
      const wording = wordingOf(name);
      if (wording === undefined) return `${name} ${valueText(name, value)}`;
      return typeof wording === 'string'
        ? wording.replace('#', valueText(name, value))
        : wording(value, facts);
    })
    .filter((text) => text !== '')
    .join(', ');
}

/** A factor for people: one decimal, none of those from 10 on. */
export const factorText = (factor: number): string => factor.toFixed(factor < 10 ? 1 : 0);
