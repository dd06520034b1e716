import type { InjectedCounts } from '../local/inject/injection.ts';
import { formatCount, plural } from './format.ts';

/** What went wrong on purpose, in one line: "1 slow node, 2 killed workers, 0 throttled launches". */
export function renderInjected({ slow, killed, throttled }: InjectedCounts): string {
  return [
    plural(slow, 'slow node'),
    plural(killed, 'killed worker'),
    `${formatCount(throttled)} throttled launch${throttled === 1 ? '' : 'es'}`,
  ].join(', ');
}
