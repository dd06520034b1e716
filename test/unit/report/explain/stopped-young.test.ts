import { describe, expect, it } from 'vitest';
import type { AttemptRecord } from '../../../../src/contracts/records.ts';
import { readDecisions } from '../../../../src/report/explain/decision-events.ts';
import { type About, explainJob } from '../../../../src/report/explain/explain-job.ts';
import { renderExplanation } from '../../../../src/report/explain/explanation-text.ts';
import { readLogLine } from '../../../../src/report/log-lines.ts';
import { makeStyle } from '../../../../src/report/style.ts';
import { jobRecord, stageSummary } from '../report-records.ts';
import { at, attempt, line, usualTasks } from './explained-attempts.ts';

const tasks = 10;
const each = <Made>(make: (task: number) => Made): Made[] => Array.from({ length: tasks }, (_, i) => make(i));

function explained(
  attempts: readonly AttemptRecord[],
  {
    state = 'succeeded',
    now = 20_000,
    lines = [],
    about,
  }: {
    state?: 'succeeded' | 'running';
    now?: number;
    lines?: readonly ReturnType<typeof line>[];
    about?: About;
  } = {},
) {
  const done = new Set(
    attempts.flatMap((one) => (one.state === 'done' ? [one.attemptId.split('/')[1]] : [])),
  );
  const job = jobRecord({
    state,
    ...(state === 'running' ? {} : { endedAt: at(now) }),
    stages: [stageSummary({ name: 'map', tasks, done: done.size })],
  });
  return explainJob({ job, attempts, decisions: readDecisions(lines.map(readLogLine)), now: at(now) }, about);
}

const textOf = (...of: Parameters<typeof explained>): string =>
  renderExplanation(explained(...of), makeStyle({ isTty: false, env: {} })).join('\n');

describe('an attempt that was stopped young, or is young yet', () => {
  /** Tasks of a second, each with a clone that began later on a new node and was stopped with so much read. */
  const cloned = (
    own: Parameters<typeof attempt>[1],
    clone: Parameters<typeof attempt>[1],
  ): readonly AttemptRecord[] =>
    each((task) => [
      attempt(`map/${String(task)}/0`, own),
      attempt(`map/${String(task)}/1`, { state: 'cancelled', order: 'cancel', ...clone }),
    ]).flat();

  it('is no straggler, and its node is not slow, where it got on as others do', () => {
    const jobs = [
      cloned(
        { ended: 1_100, phases: { init: 200, read: 300, compute: 400, write: 100 } },
        { claimed: 800, ended: 1_290, read: 200, phases: { init: 250, read: 120, compute: 100, write: 0 } },
      ),
      // Bound by its reads.
      cloned(
        { ended: 3_100, phases: { init: 200, read: 2_600, compute: 100, write: 100 } },
        { claimed: 2_700, ended: 3_250, read: 30, phases: { init: 250, read: 290, compute: 5, write: 0 } },
      ),
    ];
    for (const attempts of jobs) {
      const { stages, slowNodes } = explained(attempts);
      expect(slowNodes).toEqual([]);
      expect(stages.map(({ stragglers }) => stragglers)).toEqual([0]);
      const of = explained(attempts, { about: { stage: 'map', task: 0 } }).stages[0]?.told[0];
      expect(of?.attempts[1]).not.toHaveProperty('slowness');
    }
  });

  it('is slow where it ran for nearly the usual time with a tenth read', () => {
    const attempts = [
      ...usualTasks(9),
      attempt('map/9/0', { ended: 2_100 }),
      attempt('map/9/1', {
        ...{ claimed: 300, ended: 2_100, state: 'cancelled', order: 'cancel', read: 100, node: 'slow' },
        phases: { init: 800, read: 250, compute: 750, write: 0 },
      }),
    ];
    const { slowNodes } = explained(attempts);
    // A start of 0.8 s, and 1 s for a tenth.
    expect(slowNodes).toMatchObject([{ node: 'slow', slowness: 5.4, attempts: ['map/9/1'] }]);
  });

  it('holds up no task where it came second, however slow it was', () => {
    const late = { ended: 2_500, state: 'cancelled', order: 'cancel', read: 100 } as const;
    const attempts = [...usualTasks(10), attempt('map/9/1', { launched: 100, ...late, node: 'slow' })];
    expect(explained(attempts).stages).toMatchObject([{ stragglers: 0 }]);
    // Nor does the one that a clone of it, launched with it, has outrun.
    const outrun = [
      ...usualTasks(9),
      attempt('map/9/0', { ...late, node: 'slow' }),
      attempt('map/9/1', { ended: 2_150 }),
    ];
    const lines = [line(0, 'launched', { attemptId: 'map/9/1', reason: 'clone' })];
    expect(explained(outrun, { lines }).stages).toMatchObject([{ stragglers: 0 }]);
  });

  /** Six tasks of 20 s are done, and four run at the same rate; of those, the last report is of 1.5 s. */
  const running = (reported: number, read: number): readonly AttemptRecord[] =>
    each((task) =>
      task < 6
        ? attempt(`map/${String(task)}/0`, { ended: 20_100, phases: { read: 16_000, compute: 3_000 } })
        : attempt(`map/${String(task)}/0`, {
            ...{ launched: 20_200, claimed: 20_300, state: 'running', reported: 20_300 + reported, read },
            phases: { init: 200, read: (reported - 200) * 0.8, compute: (reported - 200) * 0.2, write: 0 },
          }),
    );

  it('is not slow for what it has read since its last report', () => {
    for (const now of [25_800, 33_000]) {
      const { stages, slowNodes } = explained(running(1_500, 66), { state: 'running', now });
      expect(slowNodes).toEqual([]);
      expect(stages).toMatchObject([{ stragglers: 0, told: [{ causes: [{ kind: 'host-wait' }] }] }]);
    }
  });

  it('is slow by what it had read at its last report, or by how long it has run since', () => {
    // A start of 0.2 s, and 9.8 s for a quarter: 39.4 s in all.
    const slow = { state: 'running', now: 32_300, about: { stage: 'map', task: 9 } } as const;
    expect(textOf(running(10_000, 250), slow)).toContain(
      'after 10.0s it had read 25 % of its input, had run for 12.0s when it was seen last, and was to take 2.0 times what is usual',
    );
    const frozen = { state: 'running', now: 80_300, about: { stage: 'map', task: 9 } } as const;
    expect(textOf(running(1_500, 66), frozen)).toContain(
      'after 1.5s it had read 7 % of its input, had run for 1m00s when it was seen last, and was to take 3.0 times what is usual',
    );
  });
});
