import { describe, expect, it } from 'vitest';
import { type Explanation, explanationSchema } from '../../../../src/contracts/explanation.ts';
import type { AttemptRecord } from '../../../../src/contracts/records.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { readDecisions } from '../../../../src/report/explain/decision-events.ts';
import { explainJob } from '../../../../src/report/explain/explain-job.ts';
import { renderExplanation } from '../../../../src/report/explain/explanation-text.ts';
import { type LogEvent, readLogLine } from '../../../../src/report/log-lines.ts';
import { makeStyle } from '../../../../src/report/style.ts';
import { jobRecord, stageSummary } from '../report-records.ts';
import { attempt, submittedAt, usualTasks } from './explained-attempts.ts';

const line = (ms: number, event: string, facts: object): LogEvent => {
  const at = epochMs(submittedAt + ms);
  const text = JSON.stringify({ at: new Date(at).toISOString(), level: 'info', event, ...facts });
  return readLogLine({ at, source: 's', text });
};

/** What is told of task map/3, beside three usual ones. */
function explained(
  attempts: readonly AttemptRecord[],
  ...events: readonly LogEvent[]
): { readonly explanation: Explanation; readonly lines: readonly string[] } {
  const stages = [stageSummary({ name: 'map', tasks: 4, done: 4 })];
  const explanation = explainJob(
    {
      job: jobRecord({ state: 'succeeded', stages }),
      attempts: [...usualTasks(3), ...attempts],
      decisions: readDecisions(events),
      now: submittedAt + 50_000,
    },
    { stage: 'map', task: 3 },
  );
  return { explanation, lines: renderExplanation(explanation, makeStyle({ isTty: false, env: {} })) };
}

describe('the end of an attempt', () => {
  it('is told of one that Lambda would have ended, as why another came in its place', () => {
    const { explanation, lines } = explained(
      [
        attempt('map/3/0', { ended: 900, state: 'cancelled', order: 'cancel', read: 20 }),
        attempt('map/3/1', { launched: 1_000, ended: 4_000 }),
      ],
      line(0, 'launched', { attemptId: 'map/3/0', reason: 'first' }),
      line(800, 'told-to-stop', { attemptId: 'map/3/0', reason: 'outlasts-lambda', remMs: 9_000 }),
      line(1_000, 'launched', { attemptId: 'map/3/1', reason: 'retry', worker: 'fargate medium' }),
    );
    expect(explanation.stages[0]?.told[0]?.attempts[0]?.stopReason).toBe('outlasts-lambda');
    expect(lines.join('\n')).toContain(
      '1.0s went by before map/3/1 was launched, since map/3/0 was told to stop, as it would not have been done when Lambda ends it.',
    );
  });

  it('is when it was told to stop where it has stood still since its claim, whatever its clock says', () => {
    for (const skew of [0, 3_600_000]) {
      const frozen = attempt('map/3/0', {
        ...{ claimed: 100 - skew, reported: 100 - skew, state: 'running', order: 'cancel', read: 0 },
        phases: { init: 0, read: 0, compute: 0, write: 0 },
      });
      const { explanation } = explained(
        [frozen, attempt('map/3/1', { launched: 3_600, ended: 5_600 })],
        line(3_600, 'launched', { attemptId: 'map/3/1', reason: 'backup' }),
        line(5_700, 'told-to-stop', { attemptId: 'map/3/0', reason: 'sibling-won' }),
      );
      const [told] = explanation.stages[0]?.told ?? [];
      expect(told).toMatchObject({
        straggler: true,
        // 5.7 s, of which it has waited 0.1 where its clock can tell so.
        attempts: [
          { end: 'open', runMs: skew === 0 ? 5_600 : 5_700 },
          { end: 'won', runMs: 1_900 },
        ],
      });
      expect(told?.causes.map(({ kind }) => kind)).toContain('copied');
    }
  });

  it('is told of a worker that ended before it had claimed it, and not as if none had', () => {
    const unclaimed = (failure?: AttemptRecord['failure']): string => {
      const why = failure === undefined ? {} : { failure };
      return explained([attempt('map/3/0', { state: 'lost', claimed: undefined, ...why })]).lines.join('\n');
    };
    expect(unclaimed()).toContain('launched at 00:16:40, no worker took it up.');
    expect(unclaimed({ cause: 'expired', message: 'it waited too long' })).toContain(
      ', no worker took it up.',
    );
    expect(unclaimed({ cause: 'exited', message: 'its worker exited: killed' })).toContain(
      'launched at 00:16:40, its worker ended before it had said that it began.',
    );
  });

  it('is no failure for nothing where another went on with its work', () => {
    const failure = { cause: 'timeout', message: 'it left its task' } as const;
    const again = attempt('map/3/1', { launched: 4_000 });
    const { explanation, lines } = explained(
      [
        attempt('map/3/0', { state: 'failed', ended: 3_500, failure }),
        ...(again.progress === undefined
          ? []
          : [{ ...again, progress: { ...again.progress, takenUp: { attempt: 0, bytes: 400 } } }]),
      ],
      line(4_000, 'launched', { attemptId: 'map/3/1', reason: 'retry' }),
    );
    expect(explanationSchema.parse(explanation)).toEqual(explanation);
    expect(lines).toContain(
      '  00:16:44 map/3/1 was launched again, to go on where attempt 0 had to end. It won.',
    );
    expect(lines).toContain('  map/3/1, launched again after one that had to end:');
    expect(lines.join('\n')).not.toContain('came to nothing');
  });

  it.each(['retry', 'backup', undefined])(
    'is that of an output made again also where that was no first try, but a %s',
    (reason) => {
      const again = ['map/3/0', 'map/3/1', 'map/3/2', 'map/3/3'];
      const { explanation } = explained(
        [
          attempt('map/3/0', { ended: 2_100 }),
          attempt('map/3/1', { launched: 3_000, ended: 4_000, state: 'failed' }),
          attempt('map/3/2', { launched: 5_000, ended: 9_000 }),
          attempt('map/3/3', { launched: 6_000, ended: 9_500 }),
        ],
        ...(reason === undefined
          ? []
          : ['first', 'recompute', reason, 'backup'].map((why, place) =>
              line(1_000 * place, 'launched', { attemptId: again[place], reason: why }),
            )),
      );
      expect(explanation.stages[0]?.told[0]?.attempts.map(({ end }) => end)).toEqual([
        ...['won', 'failed', 'again', 'second'],
      ]);
      expect(explanation.actions.find(({ of }) => of === 'map/3/2')?.end).toBe(
        reason === undefined ? undefined : 'again',
      );
    },
  );

  it('is told of one that was given up no later than anything was heard of it', () => {
    const silent = { state: 'lost', claimed: 100, ended: 40_100, reported: 1_500, read: 900 } as const;
    const { explanation, lines } = explained(
      [attempt('map/3/0', silent), attempt('map/3/1', { launched: 40_200 })],
      line(40_100, 'given-up', { attemptId: 'map/3/0', reason: 'silent' }),
    );
    const [first] = explanation.stages[0]?.told[0]?.attempts ?? [];
    expect(first).toMatchObject({ end: 'lost', runMs: 1_400, givenUp: 'silent' });
    // It ended before the usual time was up: how fast it was nobody knows.
    expect(first?.slowness).toBeUndefined();
    expect(lines).toContain(
      '  40.2s went by before map/3/1 was launched, since map/3/0 was lost (its worker stopped reporting).',
    );
    // Once with its attempt, and not again among all that failed.
    expect(lines).toContain('    It was lost (its worker stopped reporting).');
    expect(lines).not.toContain('What failed');
    expect(lines.join('\n')).toMatch(/launched at 00:16:40, waited 0\.1s, ran for 1\.4s \(/);
    expect(lines.join('\n')).not.toMatch(/slow|40\.0s/);
  });

  it.each([
    ['at once', 2_000, undefined],
    ['long after, when it had been given up', 40_100, undefined],
    ['by another clock than its own', 2_000, 3_600_000],
  ])('shows no slow node where its worker died, and another told of it %s', (_, ended, behind = 0) => {
    const failure = { cause: 'exited', message: 'its worker exited: killed' } as const;
    const claimed = 100 - behind;
    // It was killed soon after its report: its task ran as usual on another node, in 2.0 s.
    const dead = attempt('map/3/0', {
      ...{ state: 'lost', order: 'cancel', claimed, ended: ended + 5_000, failure },
      ...{ reported: claimed + 500, read: 100 },
    });
    const { explanation, lines } = explained([dead, attempt('map/3/1', { launched: ended + 5_100 })]);
    expect(explanation.slowNodes).toEqual([]);
    const [first] = explanation.stages[0]?.told[0]?.attempts ?? [];
    expect(first?.slowness).toBeUndefined();
    expect(first?.runMs).toBe(ended + (behind === 0 ? 4_900 : 5_000));
    expect(lines.join('\n')).not.toMatch(/slow/);
  });

  it.each([
    ['its own', undefined, 60_000],
    ['one an hour behind', 3_600_000, 60_100],
  ])(
    'is at the end of its time where Lambda ended its silent worker, whose clock was %s',
    (_, behind = 0, ms) => {
      // A worker that is well stops itself before that: this one stood still since its only report.
      const failure = {
        cause: 'timeout',
        message: 'Lambda ended its worker: Task timed out',
        mayPass: true,
      } as const;
      const claimed = 100 - behind;
      const frozen = attempt('map/3/0', {
        ...{
          state: 'lost',
          order: 'cancel',
          claimed,
          ended: 60_100,
          reported: claimed + 500,
          read: 100,
          failure,
        },
        phases: { init: 200, read: 100, compute: 100, write: 0 },
      });
      const { explanation } = explained([frozen, attempt('map/3/1', { launched: 60_200 })]);
      const [told] = explanation.stages[0]?.told ?? [];
      expect(told?.straggler).toBe(true);
      expect(told?.attempts[0]).toMatchObject({ end: 'lost', runMs: ms, slowness: ms / 2_000 });
    },
  );

  it('shows a slow node where its worker died by what it had told until then', () => {
    const failure = { cause: 'exited', message: 'its worker exited: killed' } as const;
    const dead = attempt('map/3/0', {
      ...{ state: 'lost', order: 'cancel', ended: 9_000, reported: 8_100, read: 400, failure },
      phases: { init: 900, read: 1_000, compute: 5_000, write: 300 },
    });
    const { explanation } = explained([dead, attempt('map/3/1', { launched: 9_100 })]);
    expect(explanation.slowNodes).toMatchObject([{ node: 'node-map/3/0', attempts: ['map/3/0'] }]);
  });

  it.each(['user-code', 'bad-record', 'input-lost', 'storage', 'out-of-memory'] as const)(
    'shows no slow node where it failed by itself (%s), however little it had read by then',
    (cause) => {
      // It threw at its first record, and telling where took it a while.
      const failed = attempt('map/3/0', {
        ...{ state: 'failed', ended: 2_300, read: 20, failure: { cause, message: 'it broke' } },
        phases: { init: 600, read: 100, compute: 1_400, write: 0 },
      });
      const { explanation, lines } = explained([failed, attempt('map/3/1', { launched: 2_400 })]);
      expect(explanation.slowNodes).toEqual([]);
      expect(explanation.stages[0]?.told[0]?.attempts[0]?.slowness).toBeUndefined();
      expect(lines.join('\n')).not.toMatch(/slow/);
    },
  );

  it('shows a slow node where its time on Lambda ran out there', () => {
    const failure = { cause: 'timeout', message: 'Lambda ended it' } as const;
    const late = attempt('map/3/0', {
      ...{ state: 'failed', ended: 20_100, read: 300, failure },
      phases: { init: 2_000, read: 3_000, compute: 14_000, write: 1_000 },
    });
    const { explanation } = explained([late, attempt('map/3/1', { launched: 20_200 })]);
    expect(explanation.slowNodes).toMatchObject([{ node: 'node-map/3/0' }]);
  });
});
