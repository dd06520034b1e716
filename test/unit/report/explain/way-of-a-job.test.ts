import { describe, expect, it } from 'vitest';
import { explanationSchema } from '../../../../src/contracts/explanation.ts';
import type { AttemptRecord, JobRecord } from '../../../../src/contracts/records.ts';
import { readDecisions } from '../../../../src/report/explain/decision-events.ts';
import { explainJob } from '../../../../src/report/explain/explain-job.ts';
import { renderExplanation } from '../../../../src/report/explain/explanation-text.ts';
import { readLogLine } from '../../../../src/report/log-lines.ts';
import { makeStyle } from '../../../../src/report/style.ts';
import { jobRecord, stageSummary } from '../report-records.ts';
import { at, attempt, line, twoStages, usualTasks } from './explained-attempts.ts';

const job = (changes: Partial<JobRecord>): JobRecord =>
  jobRecord({ spec: twoStages, state: 'succeeded', dollars: 0.0123, ...changes });

describe('the way of a job', () => {
  /** The spans of a job of `twoStages` that was looked at 12 s after its submission. */
  const spansOf = (
    of: Partial<JobRecord>,
    known: readonly AttemptRecord[],
    told: readonly ReturnType<typeof line>[] = [],
  ): readonly string[] =>
    explainJob({
      job: jobRecord({ spec: twoStages, state: 'running', ...of }),
      attempts: known,
      decisions: readDecisions(told.map(readLogLine)),
      now: at(12_000),
    }).path.map(({ kind, stage, attemptId, ms }) => `${kind} ${attemptId ?? stage ?? ''} ${String(ms)}`);

  it('tells a wait for room from planning: what was opened, and nothing of it launched', () => {
    const stages = [stageSummary({ name: 'map', tasks: 4 })];
    const waiting = [
      line(400, 'planned', { stages: [] }),
      line(500, 'stage-opened', { stage: 'map' }),
      line(900, 'refused', { task: 'map/0', reason: 'no-slot' }),
    ];
    expect(spansOf({ stages }, [], waiting)).toEqual(['plan  500', 'before-launch map 11500']);
    const cancelled = { state: 'cancelled', endedAt: at(10_000), stages } as const;
    expect(spansOf(cancelled, [], waiting)).toEqual(['plan  500', 'before-launch map 9500']);
    // Its record tells when it was opened where no log does.
    const opened = [stageSummary({ name: 'map', tasks: 4, startedAt: at(700) })];
    expect(spansOf({ stages: opened }, [])).toEqual(['plan  700', 'before-launch map 11300']);
    const late = attempt('map/0/0', { launched: 8_700, claimed: 9_000, state: 'running' });
    expect(spansOf({ stages: opened }, [late])).toEqual([
      'plan  700',
      'before-launch map/0/0 8000',
      'host-wait map/0/0 300',
      'run map/0/0 3000',
    ]);
  });

  it('does not say of a job that goes on that it ends: it waits for a slot, for its host, or for what comes next', () => {
    const map = usualTasks(4);
    const first = ['plan  500', 'host-wait map/3/0 100', 'run map/3/0 2000'];
    const mapped = (given: readonly AttemptRecord[]) =>
      given.map((each) => ({ ...each, launchedAt: at(500), claimedAt: at(600), endedAt: at(2_600) }));
    const stages = (sum: object) => [
      stageSummary({ name: 'map', tasks: 4, done: 4, startedAt: at(500) }),
      stageSummary({ name: 'sum', tasks: 1, ...sum }),
    ];
    const path = (of: object, more: readonly AttemptRecord[] = []) =>
      spansOf({ stages: stages(of) }, [...mapped(map), ...more]).map((each) =>
        each.replace(/map\/\d\/0/, 'map/3/0'),
      );
    expect(path({})).toEqual([...first, 'wait  9400']);
    expect(path({ startedAt: at(3_000) })).toEqual([...first, 'before-launch sum 9400']);
    const launched = attempt('sum/0/0', { launched: 4_000, state: 'launched' });
    expect(path({ startedAt: at(3_000) }, [launched])).toEqual([
      ...first,
      'before-launch sum/0/0 1400',
      'host-wait sum/0/0 8000',
    ]);
  });

  it.each([
    { state: 'running', order: 'continue' },
    { state: 'cancelled', order: 'cancel' },
  ] as const)('tells how long an attempt has waited for a worker of a job that is $state', (of) => {
    const { state, order } = of;
    const facts = {
      job: job({
        state,
        ...(state === 'running' ? {} : { endedAt: at(600_000) }),
        stages: [stageSummary({ name: 'map', tasks: 4, done: 3, startedAt: at(0) })],
      }),
      attempts: [...usualTasks(3), attempt('map/3/0', { launched: 100, state: 'launched', order })],
      ...{ decisions: readDecisions([]), now: at(state === 'running' ? 600_000 : 900_000) },
    };
    const explained = explainJob(facts);
    expect(explanationSchema.parse(explained)).toEqual(explained);
    expect(
      explained.path.map(({ kind, attemptId = '', ms }) => `${kind} ${attemptId} ${String(ms)}`),
    ).toEqual(['before-launch map/3/0 100', 'host-wait map/3/0 599900']);
    const told = (...about: Parameters<typeof explainJob>): readonly string[] =>
      renderExplanation(explainJob(...about), makeStyle({ isTty: false, env: {} }));
    expect(told(facts)).toContain('  map/3 is not done 10m00s after the stage began.');
    expect(told(facts)).toContain('  map/3/0 had waited 10m00s for a worker when it was seen last.');
    const [, attempts] = told(facts, { stage: 'map', task: 3 }).join('\n').split('Its attempts\n');
    expect(attempts?.split('\n').slice(0, 3)).toEqual([
      '  map/3/0, the first attempt:',
      '    launched at 00:16:40, had waited 10m00s for a worker.',
      '    It had not begun when it was seen last.',
    ]);
  });

  it('takes no attempt for one that is waited for whose task another has done, or that another has replaced', () => {
    const facts = {
      job: job({
        ...{ state: 'cancelled', endedAt: at(600_000) },
        stages: [stageSummary({ name: 'map', tasks: 2, done: 1, startedAt: at(0) })],
      }),
      attempts: [
        attempt('map/0/0', { ended: 2_100 }),
        attempt('map/0/1', { launched: 1_000, state: 'launched', order: 'cancel' }),
        attempt('map/1/0', { launched: 100, state: 'launched', order: 'cancel' }),
        attempt('map/1/1', { launched: 1_100, claimed: 1_200, state: 'running', order: 'cancel' }),
      ],
      ...{ decisions: readDecisions([]), now: at(900_000) },
    };
    const told = [0, 1].flatMap(
      (task) => explainJob(facts, { stage: 'map', task }).stages[0]?.told[0]?.attempts ?? [],
    );
    expect(told.map(({ attemptId, unclaimedMs }) => [attemptId, unclaimedMs])).toEqual([
      ['map/0/0', undefined],
      ['map/0/1', undefined],
      ['map/1/0', undefined],
      ['map/1/1', undefined],
    ]);
  });

  it('follows a failed job to the task over which it failed, though others ran longer', () => {
    const failure = { cause: 'user-code', message: 'no such colour' } as const;
    const error = { name: 'JobFailed', message: 'stage map, task 1 failed alike twice: no such colour' };
    const given = [
      attempt('map/0/0', { launched: 500, ended: 2_600 }),
      attempt('map/1/0', { launched: 500, ended: 1_600, state: 'failed', failure }),
      attempt('map/2/0', { launched: 500, state: 'cancelled', order: 'cancel', ended: 4_500 }),
      attempt('map/1/1', { launched: 2_000, ended: 3_600, state: 'failed', failure }),
    ];
    const explained = explainJob({
      job: job({
        ...{ state: 'failed', error, endedAt: at(5_000) },
        stages: [
          stageSummary({ name: 'map', tasks: 3, done: 1, startedAt: at(400) }),
          stageSummary({ name: 'sum' }),
        ],
      }),
      attempts: given,
      decisions: readDecisions([]),
      now: at(12_000),
    });
    expect(explanationSchema.parse(explained)).toEqual(explained);
    expect(explained.failedTask).toBe('map/1');
    expect(
      explained.path.map(({ kind, attemptId = '', ms }) => `${kind} ${attemptId} ${String(ms)}`),
    ).toEqual([
      'plan  400',
      'before-launch map/1/0 100',
      'earlier-attempts map/1/0 1500',
      'host-wait map/1/1 100',
      'run map/1/1 1500',
      'end  1400',
    ]);
    expect(explained.stages[0]?.last).toBe('map/1');
    const told = renderExplanation(explained, makeStyle({ isTty: false, env: {} }));
    expect(told).toContain('     1.5s  from the launch of map/1/0 to that of map/1/1');
    expect(told).toContain('  The job failed over map/1, 3.2s after the stage began.');
  });

  it('follows a running job to the attempt that makes a lost output again', () => {
    const failure = { cause: 'input-lost', message: 'the output of map/0 is gone' } as const;
    const given = [
      attempt('map/0/0', { launched: 500, ended: 2_600 }),
      attempt('sum/0/0', { launched: 3_000, ended: 4_000, state: 'failed', failure }),
      attempt('map/0/1', { launched: 5_000, claimed: 6_000, state: 'running' }),
    ];
    const explained = explainJob({
      job: job({
        state: 'running',
        stages: [
          stageSummary({ name: 'map', tasks: 1, startedAt: at(400) }),
          stageSummary({ name: 'sum', tasks: 1, startedAt: at(2_700) }),
        ],
      }),
      ...{ attempts: given, decisions: readDecisions([]), now: at(60_000) },
    });
    expect(explanationSchema.parse(explained)).toEqual(explained);
    expect(
      explained.path.map(({ kind, attemptId = '', ms }) => `${kind} ${attemptId} ${String(ms)}`),
    ).toEqual([
      'plan  400',
      'before-launch map/0/0 100',
      'earlier-attempts map/0/0 4500',
      'host-wait map/0/1 1000',
      'run map/0/1 54000',
    ]);
    const told = renderExplanation(explained, makeStyle({ isTty: false, env: {} })).join('\n');
    expect(told).toContain('     4.5s  from the launch of map/0/0 to that of map/0/1');
    expect(told).toContain('  map/0 is not done 59.6s after the stage began.');
    expect(told).not.toContain('none of its attempts was at work');
  });

  it('follows a failed job to the attempts that failed over a task which had been done once', () => {
    const failure = { cause: 'user-code', message: 'no such colour' } as const;
    const error = { name: 'JobFailed', message: 'stage map, task 1 failed alike twice: no such colour' };
    const explained = explainJob({
      job: job({
        ...{ state: 'failed', error, endedAt: at(10_000) },
        stages: [stageSummary({ name: 'map', tasks: 2, startedAt: at(400) }), stageSummary({ name: 'sum' })],
      }),
      attempts: [
        attempt('map/0/0', { launched: 500, ended: 2_600 }),
        attempt('map/1/0', { launched: 500, ended: 1_600 }),
        attempt('map/1/1', { launched: 4_000, ended: 5_600, state: 'failed', failure }),
        attempt('map/1/2', { launched: 6_000, ended: 8_600, state: 'failed', failure }),
      ],
      ...{ decisions: readDecisions([]), now: at(12_000) },
    });
    expect(
      explained.path.map(
        ({ kind, attemptId = '', to = '', ms }) => `${kind} ${attemptId} ${to} ${String(ms)}`,
      ),
    ).toEqual([
      'plan   400',
      'before-launch map/1/0  100',
      'earlier-attempts map/1/0 map/1/2 5500',
      'host-wait map/1/2  100',
      'run map/1/2  2500',
      'end   1400',
    ]);
    const told = renderExplanation(explained, makeStyle({ isTty: false, env: {} }));
    expect(told).toContain('  The job failed over map/1, 8.2s after the stage began.');
    expect(told).toContain(
      '  3.5s went by before map/1/1 was launched, since the output of map/1/0 was lost later.',
    );
    expect(told.filter((line) => line.includes('was launched, since map/1/1 failed'))).toEqual([
      '  2.0s went by before map/1/2 was launched, since map/1/1 failed (user-code: no such colour).',
    ]);
  });

  it.each([true, false])(
    'follows a running job to the attempt at an output that was lost twice (log: %s)',
    (isTold) => {
      const given = [
        attempt('map/0/0', { launched: 500, ended: 2_600 }),
        attempt('map/0/1', { launched: 5_000, ended: 7_100 }),
        attempt('map/0/2', { launched: 9_000, ended: 9_500, state: 'failed' }),
        attempt('map/0/3', { launched: 10_000, state: 'running' }),
      ];
      const log = [
        line(500, 'launched', { attemptId: 'map/0/0', reason: 'first' }),
        line(5_000, 'launched', { attemptId: 'map/0/1', reason: 'recompute' }),
        line(9_000, 'launched', { attemptId: 'map/0/2', reason: 'recompute' }),
        line(10_000, 'launched', { attemptId: 'map/0/3', reason: 'retry' }),
      ];
      const explained = explainJob({
        job: job({
          state: 'running',
          stages: [stageSummary({ name: 'map', tasks: 1, startedAt: at(400) })],
        }),
        attempts: given,
        decisions: readDecisions(isTold ? log.map(readLogLine) : []),
        now: at(60_000),
      });
      expect(
        explained.path.map(({ kind, attemptId = '', ms }) => `${kind} ${attemptId} ${String(ms)}`),
      ).toEqual([
        'plan  400',
        'before-launch map/0/0 100',
        'earlier-attempts map/0/0 9500',
        'host-wait map/0/3 100',
        'run map/0/3 49900',
      ]);
      const attempts = explained.stages[0]?.told[0]?.attempts;
      expect(attempts?.map(({ end }) => end)).toEqual(['won', 'again', 'failed', 'open']);
      const told = renderExplanation(explained, makeStyle({ isTty: false, env: {} }));
      expect(told).toContain('  map/0 is not done 59.6s after the stage began.');
      expect(told).toContain(
        '  8.5s went by before map/0/2 was launched, since the output of map/0/1 was lost later.',
      );
    },
  );

  it('follows a running job to an attempt at a lost output that has failed, while the next one waits', () => {
    const explained = explainJob({
      job: job({
        state: 'running',
        stages: [stageSummary({ name: 'map', tasks: 1, done: 0, startedAt: at(400) })],
      }),
      attempts: [
        attempt('map/0/0', { launched: 500, ended: 2_600 }),
        attempt('map/0/1', { launched: 5_000, ended: 8_000, state: 'failed' }),
      ],
      ...{ decisions: readDecisions([]), now: at(60_000) },
    });
    expect(explained.path.map(({ kind, attemptId = '' }) => `${kind} ${attemptId}`)).toContain('run map/0/1');
    const told = renderExplanation(explained, makeStyle({ isTty: false, env: {} })).join('\n');
    expect(told).toContain('  map/0 is not done 59.6s after the stage began.');
  });

  it('takes no attempt for one at a lost output by the clock of the worker that won', () => {
    const failed = attempt('map/0/0', { launched: 500, ended: 2_600, state: 'failed' });
    // Ninety seconds behind; and one of which nobody knows when it began.
    const behind = attempt('map/0/1', { launched: 100_000, claimed: 10_100, ended: 12_100 });
    const { claimedAt, ...unclaimed } = attempt('map/0/1', { launched: 100_000, ended: 102_000 });
    expect(claimedAt).toBeDefined();
    for (const winner of [behind, unclaimed]) {
      const explained = explainJob({
        job: job({ stages: [stageSummary({ name: 'map', tasks: 1, startedAt: at(400) })] }),
        attempts: [failed, winner],
        ...{ decisions: readDecisions([]), now: at(200_000) },
      });
      const kinds = explained.stages[0]?.told[0]?.causes.map(({ kind }) => kind);
      expect(kinds).toContain('earlier-failed');
      expect(kinds).not.toContain('output-lost');
    }
  });

  it('says of no job that succeeded that a task is not done', () => {
    const explained = explainJob({
      job: job({ stages: [stageSummary({ name: 'map', tasks: 1, done: 1, startedAt: at(400) })] }),
      attempts: [
        attempt('map/0/0', { launched: 500, ended: 2_600 }),
        attempt('map/0/1', { launched: 5_000, state: 'running' }),
      ],
      ...{ decisions: readDecisions([]), now: at(60_000) },
    });
    const told = renderExplanation(explained, makeStyle({ isTty: false, env: {} })).join('\n');
    expect(told).not.toContain('not done');
  });

  it('adds up what its workers took where some were given up, of the job, of a stage and of a task', () => {
    const silent = { state: 'lost', launched: 0, claimed: 100, reported: 4_100, ended: 120_100 } as const;
    const given = [
      ...usualTasks(3),
      attempt('map/3/0', silent),
      attempt('map/3/1', { launched: 121_000, claimed: 121_100, ended: 123_100 }),
    ];
    const stages = [stageSummary({ name: 'map', tasks: 4, done: 4, workerMs: 128_000 })];
    const facts = {
      job: job({ endedAt: at(124_000), workerMs: 128_000, stages }),
      ...{ attempts: given, decisions: readDecisions([]), now: at(124_000) },
    };
    expect(explainJob(facts).cost).toMatchObject({ wonMs: 8_000, otherMs: 4_000, unheardMs: 116_000 });
    expect(explainJob(facts, { stage: 'map' }).cost).toEqual(explainJob(facts).cost);
    expect(explainJob(facts, { stage: 'map', task: 3 }).cost).toMatchObject({
      ...{ wonMs: 2_000, otherMs: 4_000, unheardMs: 116_000 },
    });
    expect(renderExplanation(explainJob(facts), makeStyle({ isTty: false, env: {} })).at(-1)).toBe(
      '  $0.0123 and 2m08s of workers. Attempts that won ran for 8.0s, all others for 4.0s and are billed at most 1m56s more, in which nothing was heard of them (94 %).',
    );
  });
});
