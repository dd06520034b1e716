import { describe, expect, it } from 'vitest';
import { causeSentences } from '../../../../src/report/explain/cause-sentences.ts';
import type { LogEvent } from '../../../../src/report/log-lines.ts';
import { attempt, explained, told as at, usualTasks } from './explained-attempts.ts';

const siblings = usualTasks(8);

describe('what a cause is told by', () => {
  it('is a phase against what that usually takes for as much as it has read', () => {
    const big = attempt('map/8/0', {
      ...{ ended: 9_100, read: 3_000, total: 3_000 },
      phases: { read: 6_000, compute: 2_700 },
    });
    expect(causeSentences(explained(8, [...siblings, big]))[1]).toBe(
      'map/8/0 read slowly: 6.0s against 0.9s; in all, it took 1.5 times what is usual for its input (9.0s against 6.0s).',
    );
    const stopped = attempt('map/8/0', {
      ...{ state: 'cancelled', order: 'cancel', ended: 2_000, read: 100 },
      phases: { read: 30, compute: 1_660, write: 10 },
    });
    expect(explained(8, [...siblings, stopped]).causes.at(-1)).toMatchObject({
      kind: 'slow-compute',
      facts: { phaseMs: 1_660, usualPhaseMs: 140 },
    });
  });

  it('is no want of dollars, nor of a slot, where a copy of a task at work was refused for that', () => {
    const late = [...siblings, attempt('map/8/0', { launched: 8_000 })];
    const dollars = { budgetDollars: 1, spentDollars: 0.5, attemptDollars: 0.1 };
    const sentence = (task: string, ms: number, reason: string, ...more: readonly LogEvent[]) =>
      causeSentences(
        explained(8, late, [
          at(0, 'stage-opened', 'map'),
          ...more,
          at(ms, 'refused', task, { reason, ...dollars }),
        ]),
      )[0];
    const before = '8.0s went by from the opening of its stage to the launch of map/8/0';
    const short = at(1_000, 'refused', 'map/8', { reason: 'no-slot' });
    // map/0/0 is at work until 2.1 s.
    expect(sentence('map/0', 1_500, 'budget')).toBe(`${before}.`);
    expect(sentence('map/0', 1_500, 'no-slot')).toBe(`${before}.`);
    expect(sentence('map/0', 1_500, 'budget', short)).toBe(`${before}, while the job had no slot free.`);
    expect(sentence('map/8', 3_000, 'budget')).toBe(`${before}, while the job lacked the dollars for it.`);
    expect(sentence('map/9', 3_000, 'budget')).toBe(`${before}, while the job lacked the dollars for it.`);
  });
});
