import type { InjectedCounts, Injection } from '../local/inject/injection.ts';
import { formatCount, plural } from './format.ts';

type Asked = Pick<
  Injection,
  | 'slow'
  | 'kills'
  | 'memoryHogs'
  | 'interruptions'
  | 'lostObjects'
  | 'corruptObjects'
  | 'lostInvocations'
  | 'duplicateInvocations'
  | 'slowReads'
  | 'coldStarts'
  | 'pauses'
  | 'skews'
  | 'lostZone'
>;

/** What there was of a fault, and of how many that were asked for where there were fewer. */
function countText(done: number, noun: string, asked = 0): string {
  return asked > done ? `${formatCount(done)} of ${plural(asked, noun)}` : plural(done, noun);
}

/** Nothing of a fault that was neither asked for nor there. */
const countOf = (done: number, noun: string, asked = 0): readonly string[] =>
  done === 0 && asked === 0 ? [] : [countText(done, noun, asked)];

/** Of a fault that is asked for by its share, which may strike nothing. */
const shareOf = (done: number, noun: string, asked: object | undefined): readonly string[] =>
  done === 0 && asked === undefined ? [] : [plural(done, noun)];

/** Of a zone whose storage is lost after a while, which a job may not run for. */
function lossOf(zone: string | undefined, asked: string | undefined): readonly string[] {
  if (zone !== undefined) return [`storage of ${zone} lost`];
  return asked === undefined ? [] : [`storage of ${asked} not lost: nothing ran so long`];
}

/**
 * What went wrong on purpose, in one line: "1 slow node, 2 killed workers, 0 throttled launches". Where it is known what was
 * asked for, that is told too as far as it struck nothing: "0 of 1 lost object".
 */
export function renderInjected(injected: InjectedCounts, asked?: Asked): string {
  const { throttled, lostZone, slowZone, slowTaskZone, slowTaskZoneId } = injected;
  return [
    countText(injected.slow, 'slow node', asked?.slow?.nodes),
    countText(injected.killed, 'killed worker', asked?.kills),
    ...countOf(injected.memoryHogs, 'memory hog', asked?.memoryHogs),
    ...countOf(injected.interrupted, 'interrupted task', asked?.interruptions),
    `${formatCount(throttled)} throttled launch${throttled === 1 ? '' : 'es'}`,
    ...shareOf(injected.slowReads, 'slow read', asked?.slowReads),
    ...shareOf(injected.coldStarts, 'slow start', asked?.coldStarts),
    ...shareOf(injected.paused, 'frozen worker', asked?.pauses),
    ...shareOf(injected.skewed, 'wrong clock', asked?.skews),
    ...countOf(injected.lostObjects, 'lost object', asked?.lostObjects),
    ...countOf(injected.corruptObjects, 'corrupt object', asked?.corruptObjects),
    ...countOf(injected.lostInvocations, 'lost invocation', asked?.lostInvocations),
    ...countOf(injected.duplicateInvocations, 'duplicate invocation', asked?.duplicateInvocations),
    ...lossOf(lostZone, asked?.lostZone?.zone),
    ...(slowZone === undefined ? [] : [`storage of ${slowZone} slow`]),
    ...(slowTaskZone === undefined
      ? []
      : [`tasks in ${slowTaskZone}${slowTaskZoneId === undefined ? '' : ` (${slowTaskZoneId})`} slow`]),
  ].join(', ');
}
