import { formatBytes, formatCount, formatDollars, formatDuration } from '../format.ts';

/** How a number that a decision went by is told; `#` stands for it. Those that are not here are told by their name. */
const wordings: Readonly<Record<string, string>> = {
  remMs: '# left to run',
  leftMs: '# left to run',
  leastRemMs: 'at least #',
  newMs: '# for a new attempt',
  savedMs: '# to be saved',
  parts: '# parts',
  usualBytes: '# usual in its stage',
  largestPartBytes: '# in the largest part',
  crossingBytes: '# between zones',
  spreadBytes: '# if tasks were anywhere',
  slowestLinkBytes: '# over the link between zones that carries most',
  ranMs: '# run so far',
  medianMs: '# in the median',
  middleMs: '# in the median',
  thresholdMs: 'slow from # on',
  limitMs: 'slow from # on',
  forecastMs: '# foretold',
  ended: 'by # tasks that have ended',
  timedOutBytes: 'one with # to read ran out of time',
  earlierMs: '# or more for most tasks of earlier runs',
  lambdaMs: 'at most # on Lambda',
  slownessForInput: '# times the usual for its input',
  recordFactor: '# times the usual number of records in each byte',
  locationFactor: 'its zone # times as slow as where the others ran',
  zoneSamples: 'by # runs there',
  zoneSamplesOfOthers: 'by # runs of other jobs there',
  probability: 'a chance of # to end sooner',
  inputBytes: '# to read',
  lossLeftMs: '# that the stage may still lose',
  sinceCopyMs: '# since the last copy',
  restarts: '# restarts before',
  budgetDollars: 'a budget of #',
  spentDollars: '# spent',
  runningDollars: '# for what runs',
  owedDollars: '# for what is owed',
  attemptDollars: '# for one attempt more',
};

/** Numbers for programs alone. */
const untold: ReadonlySet<string> = new Set(['deltaMs', 'epoch', 'version', 'attempts']);

const decimals = 100;

function valueText(name: string, value: number): string {
  if (name.endsWith('Ms')) return formatDuration(value);
  if (name.endsWith('Bytes') || name === 'bytes') return formatBytes(value);
  if (name.endsWith('Dollars')) return formatDollars(value);
  return Number.isInteger(value) ? formatCount(value) : String(Math.round(value * decimals) / decimals);
}

/** What a copy takes of its slots' time beyond what it saves, in words: less than nothing is a gain. */
const extraText = (ms: number): string =>
  ms <= 0 ? `${formatDuration(-ms)} of slot time gained` : `${formatDuration(ms)} of slot time more`;

/** The numbers of a decision as one phrase, in their order; empty for none. */
export function factsText(facts: Readonly<Record<string, number>>): string {
  return Object.entries(facts)
    .filter(([name]) => !untold.has(name))
    .map(([name, value]) => {
      if (name === 'extraMs') return extraText(value);
      const text = valueText(name, value);
      return wordings[name]?.replace('#', text) ?? `${name} ${text}`;
    })
    .join(', ');
}

/** A factor for people: one decimal, none of those from 10 on. */
export const factorText = (factor: number): string => factor.toFixed(factor < 10 ? 1 : 0);
