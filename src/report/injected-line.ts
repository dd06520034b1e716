import type { InjectedCounts } from '../local/inject/injection.ts';
import { formatCount, plural } from './format.ts';

/** What went wrong on purpose, in one line: "1 slow node, 2 killed workers, 0 throttled launches". */
export function renderInjected(injected: InjectedCounts): string {
  const { slow, killed, interrupted, throttled, lostObjects, corruptObjects, lostZone, slowZone } = injected;
  const {
    slowTaskZone,
    slowTaskZoneId,
    memoryHogs,
    slowReads,
    coldStarts,
    paused,
    skewed,
    lostInvocations,
    duplicateInvocations,
  } = injected;
  return [
    plural(slow, 'slow node'),
    plural(killed, 'killed worker'),
    ...(memoryHogs === 0 ? [] : [plural(memoryHogs, 'memory hog')]),
    ...(interrupted === 0 ? [] : [plural(interrupted, 'interrupted task')]),
    `${formatCount(throttled)} throttled launch${throttled === 1 ? '' : 'es'}`,
    ...(slowReads === 0 ? [] : [plural(slowReads, 'slow read')]),
    ...(coldStarts === 0 ? [] : [plural(coldStarts, 'slow start')]),
    ...(paused === 0 ? [] : [plural(paused, 'frozen worker')]),
    ...(skewed === 0 ? [] : [plural(skewed, 'wrong clock')]),
    ...(lostObjects === 0 ? [] : [plural(lostObjects, 'lost object')]),
    ...(corruptObjects === 0 ? [] : [plural(corruptObjects, 'corrupt object')]),
    ...(lostInvocations === 0 ? [] : [plural(lostInvocations, 'lost invocation')]),
    ...(duplicateInvocations === 0 ? [] : [plural(duplicateInvocations, 'duplicate invocation')]),
    ...(lostZone === undefined ? [] : [`storage of ${lostZone} lost`]),
    ...(slowZone === undefined ? [] : [`storage of ${slowZone} slow`]),
    ...(slowTaskZone === undefined
      ? []
      : [`tasks in ${slowTaskZone}${slowTaskZoneId === undefined ? '' : ` (${slowTaskZoneId})`} slow`]),
  ].join(', ');
}
