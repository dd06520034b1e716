import { describe, expect, it } from 'vitest';
import { explanationSchema } from '../../../../src/contracts/explanation.ts';
import type { AttemptRecord, JobRecord } from '../../../../src/contracts/records.ts';
import { readDecisions } from '../../../../src/report/explain/decision-events.ts';
import { type About, explainJob } from '../../../../src/report/explain/explain-job.ts';
import { renderExplanation } from '../../../../src/report/explain/explanation-text.ts';
import { readLogLine } from '../../../../src/report/log-lines.ts';
import { makeStyle } from '../../../../src/report/style.ts';
import { jobRecord, stageSummary } from '../report-records.ts';
import { at, attempt, line, twoStages, usualTasks } from './explained-attempts.ts';

const boom = { cause: 'user-code', message: 'boom' } as const;
/** Five tasks are done, and of the sixth an attempt failed after 3 s. */
const oneFailed = [...usualTasks(5), attempt('map/5/0', { state: 'failed', ended: 3_000, failure: boom })];
const opened = [line(0, 'planned'), line(0, 'stage-opened', { stage: 'map' })];

/** A job of six tasks that is looked at, or ended, after a minute. */
function explained(
  attempts: readonly AttemptRecord[],
  lines: readonly ReturnType<typeof line>[] = [],
  of: Partial<JobRecord> = {},
  about?: About,
) {
  const job = jobRecord({
    spec: twoStages,
    state: 'running',
    stages: [stageSummary({ name: 'map', tasks: 6, done: 5, startedAt: at(0) })],
    ...of,
  });
  const decisions = readDecisions([...opened, ...lines].map(readLogLine));
  const told = explainJob({ job, attempts, decisions, now: at(60_000) }, about);
  expect(explanationSchema.parse(told)).toEqual(told);
  return told;
}

const linesOf = (...of: Parameters<typeof explained>): readonly string[] =>
  renderExplanation(explained(...of), makeStyle({ isTty: false, env: {} })).map((each) => each.trim());

const map5 = { stage: 'map', task: 5 };
const waited = 'map/5 has waited 57.0s for its next attempt, since map/5/0 failed (user-code: boom)';

describe('a task whose attempt came to nothing, and that has no other yet', () => {
  it('waits for the next one: it is that which holds it up', () => {
    const lines = linesOf(oneFailed);
    expect(lines).toContain('map/5 is not done 1m00s after the stage began.');
    expect(lines).toContain(`${waited}.`);
    expect(lines).toContain('57.0s  after map/5/0, whose task waited for its next attempt');
    expect(linesOf(oneFailed, [], {}, map5)).toContain(`${waited}.`);
    for (const about of [undefined, map5])
      expect(linesOf(oneFailed, [], {}, about).join('\n')).not.toContain('Nothing');
    expect(explained(oneFailed).path.map(({ kind, ms }) => [kind, ms])).toEqual([
      ['host-wait', 100],
      ['run', 2_900],
      ['wait', 57_000],
    ]);
  });

  it('says for what it waits, where the log does', () => {
    const task = 'map/5';
    const dollars = { budgetDollars: 1, spentDollars: 0.9 };
    expect(linesOf(oneFailed, [line(4_000, 'refused', { task, reason: 'budget', ...dollars })])).toContain(
      `${waited}, while the job lacked the dollars for it.`,
    );
    expect(linesOf(oneFailed, [line(4_000, 'refused', { task, reason: 'no-slot' })])).toContain(
      `${waited}, while the job had no slot free.`,
    );
    const refused = [4_000, 9_000].map((ms) => line(ms, 'throttled', { attemptId: 'map/5/1' }));
    expect(linesOf(oneFailed, refused)).toContain(
      `${waited}; its launch was refused 2 times by the host's limits.`,
    );
    // What came before it failed, or is of another stage, is not of this wait.
    const others = [
      line(1_000, 'refused', { task, reason: 'no-slot' }),
      line(4_000, 'refused', { task: 'sum/0', reason: 'no-slot' }),
    ];
    expect(linesOf(oneFailed, others)).toContain(`${waited}.`);
  });

  it('waited to the end of a job that was cancelled, or ended by its budget', () => {
    const error = { name: 'BudgetReached', message: 'the budget of $1 does not suffice' };
    for (const of of [{ state: 'cancelled' }, { state: 'failed', error }] as const) {
      const lines = linesOf(oneFailed, [], { ...of, endedAt: at(60_000) });
      expect(lines).toContain('map/5 is not done 1m00s after the stage began.');
      expect(lines).toContain(
        'map/5 had waited 57.0s for its next attempt as the job ended, since map/5/0 failed (user-code: boom).',
      );
      expect(lines).toContain('57.0s  after map/5/0, whose task waited for its next attempt');
      expect(lines.join('\n')).not.toContain('Nothing held');
    }
    // Of one that failed nobody says over which task.
    const failed = {
      state: 'failed',
      endedAt: at(60_000),
      error: { name: 'JobFailed', message: 'boom' },
    } as const;
    expect(linesOf(oneFailed, [], failed).join('\n')).not.toContain('next attempt');
  });

  it('waits likewise where it was given up or declined', () => {
    const silent = attempt('map/5/0', { state: 'lost', reported: 1_000, ended: 31_000 });
    expect(
      linesOf(
        [...usualTasks(5), silent],
        [line(31_000, 'given-up', { attemptId: 'map/5/0', reason: 'silent' })],
      ),
    ).toContain(
      'map/5 has waited 29.0s for its next attempt, since map/5/0 was lost (its worker stopped reporting).',
    );
    const failure = { cause: 'declined', message: 'it is to avoid n1' } as const;
    const declined = attempt('map/5/0', { state: 'lost', claimed: 100, ended: 200, failure });
    expect(linesOf([...usualTasks(5), declined])).toContain(
      'map/5 has waited 59.8s for its next attempt, since map/5/0 was declined (it is to avoid n1).',
    );
  });

  it('waits for its input, where that is gone, until it is there again', () => {
    const failure = { cause: 'input-lost', message: 'the output of map/0/0 is gone' } as const;
    const attempts = [
      ...usualTasks(6),
      attempt('map/0/1', { launched: 9_000, state: 'running', reported: 50_000, read: 900 }),
      ...usualTasks(3, 'sum'),
      attempt('sum/3/0', { launched: 5_000, ended: 8_000, state: 'failed', failure }),
    ];
    const stages = [
      stageSummary({ name: 'map', tasks: 6, done: 5, startedAt: at(0) }),
      stageSummary({ name: 'sum', tasks: 4, done: 3, startedAt: at(4_000) }),
    ];
    const lines = [line(9_000, 'launched', { attemptId: 'map/0/1', reason: 'recompute' })];
    const about = { stage: 'sum', task: 3 };
    const text =
      'sum/3 has waited 52.0s for its next attempt, since sum/3/0 failed (input-lost: the output of map/0/0 is gone)';
    expect(linesOf(attempts, lines, { stages }, about)).toContain(
      `${text}, while what it reads was gone and was to be made again.`,
    );
    const renewed = [...lines, line(55_000, 'inputs-renewed', { stage: 'sum', times: 1 })];
    expect(linesOf(attempts, renewed, { stages }, about)).toContain(`${text}.`);
  });

  it('waits for none while another attempt of it is at work, which then decides', () => {
    const launches = [
      line(0, 'launched', { attemptId: 'map/5/0', reason: 'first' }),
      line(2_000, 'launched', { attemptId: 'map/5/1', reason: 'backup' }),
    ];
    const backupFailed = attempt('map/5/1', {
      launched: 2_000,
      ended: 3_000,
      state: 'failed',
      failure: boom,
    });
    const kindsOf = (first: AttemptRecord) =>
      explained([...usualTasks(5), first, backupFailed], launches, {}, map5).stages[0]?.told[0]?.causes.map(
        ({ kind, attemptId }) => `${kind} ${attemptId}`,
      );
    expect(kindsOf(attempt('map/5/0', { state: 'running', reported: 59_000, read: 999 }))).not.toContain(
      'waits-again map/5/1',
    );
    // And since the last of them ended, where that came to nothing, too.
    expect(kindsOf(attempt('map/5/0', { state: 'failed', ended: 9_000, failure: boom }))).toContain(
      'waits-again map/5/0',
    );
  });

  it('was held up by nothing so far, where its attempt runs as others do', () => {
    const runs = attempt('map/5/0', { launched: 59_000, state: 'running', reported: 59_500, read: 100 });
    expect(linesOf([...usualTasks(5), runs], [], {}, map5).join('\n')).not.toContain(
      'Nothing held the task up.',
    );
    const early = [...usualTasks(5), attempt('map/5/0', { claimed: 0, state: 'running', read: 100 })];
    const job = jobRecord({ state: 'running', stages: [stageSummary({ name: 'map', tasks: 6, done: 5 })] });
    const told = explainJob({ job, attempts: early, decisions: readDecisions([]), now: at(1_000) });
    const lines = renderExplanation(told, makeStyle({ isTty: false, env: {} }));
    expect(lines).toContain('  Nothing has held that task up so far.');
  });
});
