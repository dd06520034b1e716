import { describe, expect, it } from 'vitest';
import { explanationSchema } from '../../../../src/contracts/explanation.ts';
import type { AttemptId } from '../../../../src/contracts/ids.ts';
import type { AttemptRecord, JobRecord } from '../../../../src/contracts/records.ts';
import { readDecisions } from '../../../../src/report/explain/decision-events.ts';
import { type About, explainJob } from '../../../../src/report/explain/explain-job.ts';
import { renderExplanation } from '../../../../src/report/explain/explanation-text.ts';
import { readLogLine } from '../../../../src/report/log-lines.ts';
import { makeStyle } from '../../../../src/report/style.ts';
import { jobRecord, stageSummary } from '../report-records.ts';
import { at, attempt, line, twoStages, usualTasks } from './explained-attempts.ts';

/** Submitted at 0, planned and opened at 500, ended at 12,000 ms. */
const job = (changes: Partial<JobRecord> = {}): JobRecord =>
  jobRecord({
    spec: twoStages,
    state: 'succeeded',
    endedAt: at(12_000),
    dollars: 0.0123,
    workerMs: 16_500,
    stages: [
      stageSummary({ name: 'map', tasks: 4, done: 4 }),
      stageSummary({ name: 'sum', tasks: 1, done: 1 }),
    ],
    ...changes,
  });

/** A job whose task map/3 lags on a slow node, and is overtaken by a backup. */
const attempts: readonly AttemptRecord[] = [
  ...usualTasks(3).map((each) => ({ ...each, launchedAt: at(700), claimedAt: at(800), endedAt: at(2_800) })),
  attempt('map/3/0', {
    launched: 700,
    claimed: 800,
    state: 'running',
    order: 'cancel',
    reported: 5_800,
    node: 'slow-one',
    read: 400,
    phases: { init: 1_000, read: 600, compute: 3_400, write: 0 },
  }),
  attempt('map/3/1', { launched: 4_000, claimed: 4_300, ended: 6_300, node: 'other' }),
  attempt('sum/0/0', { launched: 7_000, claimed: 7_500, ended: 11_000 }),
];

const numbers = { remMs: 9_000, newMs: 2_100, savedMs: 6_900, extraMs: -4_000 };
const lines = [
  line(400, 'planned', { stages: [] }),
  line(500, 'stage-opened', { stage: 'map' }),
  line(690, 'launched', { stage: 'map', reason: 'first', attempts: 4, from: 'map/0/0', to: 'map/3/0' }),
  line(2_000, 'refused', { task: 'map/3', reason: 'no-slot', ...numbers }),
  line(2_000, 'refused', { task: 'map/1', reason: 'not-worth-it', remMs: 900, newMs: 2_100 }),
  line(4_000, 'launched', { attemptId: 'map/3/1', reason: 'backup', avoidNodes: ['slow-one'], ...numbers }),
  line(6_350, 'told-to-stop', { attemptId: 'map/3/0', reason: 'sibling-won' }),
  line(6_400, 'stage-opened', { stage: 'sum' }),
  line(7_000, 'launched', { attemptId: 'sum/0/0', reason: 'first' }),
];

function explain(
  { given = lines, of = job(), unread }: { given?: typeof lines; of?: JobRecord; unread?: string } = {},
  about?: About,
) {
  const decisions = readDecisions(given.map(readLogLine));
  const facts = { job: of, attempts, decisions, now: at(12_000) };
  return explainJob(unread === undefined ? facts : { ...facts, unread }, about);
}

const text = (...of: Parameters<typeof explain>): string =>
  renderExplanation(explain(...of), makeStyle({ isTty: false, env: {} })).join('\n');

describe('an explanation', () => {
  it('follows the job through the tasks that ended last, without a gap', () => {
    const { path, wallMs } = explain();
    expect(path.map(({ kind, attemptId = '', ms }) => `${kind} ${attemptId} ${String(ms)}`)).toEqual([
      'plan  500',
      'before-launch map/3/0 200',
      'earlier-attempts map/3/0 3300',
      'host-wait map/3/1 300',
      'run map/3/1 2000',
      'before-launch sum/0/0 700',
      'host-wait sum/0/0 500',
      'run sum/0/0 3500',
      'end  1000',
    ]);
    expect(wallMs).toBe(12_000);
  });

  it('keeps to the shape that it promises', () => {
    for (const about of [undefined, { stage: 'map' }, { stage: 'map', task: 3 }])
      expect(explanationSchema.parse(JSON.parse(JSON.stringify(explain({}, about))))).toEqual(
        explain({}, about),
      );
  });

  it('keeps to it also where an attempt has found an output gone, and says which attempt made that again', () => {
    const failure = {
      cause: 'input-lost',
      message: 'output of map/1/0 is gone',
      lost: [{ attemptId: 'map/1/0' as AttemptId, how: 'missing', offset: 0, length: 10, crc: 7 }],
    } as const;
    const facts = {
      job: job(),
      attempts: [
        ...usualTasks(3),
        attempt('sum/0/0', { launched: 5_000, state: 'failed', failure }),
        attempt('map/1/1', { launched: 7_500 }),
        attempt('sum/0/1', { launched: 10_000 }),
      ],
      decisions: readDecisions(
        [
          ...lines.slice(0, 2),
          line(7_400, 'output-lost', { attemptId: 'map/1/0', how: 'missing', foundBy: 'sum/0/0' }),
          line(7_500, 'launched', { attemptId: 'map/1/1', reason: 'recompute' }),
          line(10_000, 'launched', { attemptId: 'sum/0/1', reason: 'retry' }),
        ].map(readLogLine),
      ),
      now: at(13_000),
    };
    const explained = explainJob(facts);
    expect(explanationSchema.parse(explained)).toEqual(explained);
    expect(explained.failures).toEqual([
      { attemptId: 'sum/0/0', cause: 'input-lost', message: 'output of map/1/0 is gone' },
    ]);
    expect(explained.actions.map(({ kind, of, end }) => [kind, of, end])).toEqual([
      ['lose-output', 'map/1/0', 'won'],
      ['recompute', 'map/1/1', 'again'],
      ['retry', 'sum/0/1', 'won'],
    ]);
    expect(renderExplanation(explained, makeStyle({ isTty: false, env: {} }))).toContain(
      '  00:16:47 map/1/1 was launched since the output of its task was gone. It made that output again.',
    );
  });

  it('names the slow node, what was done, what was declined and what it cost', () => {
    expect(explain()).toMatchObject({
      log: { state: 'whole' },
      slowNodes: [{ node: 'slow-one', evidence: ['every-phase', 'same-task'], attempts: ['map/3/0'] }],
      actions: [
        { kind: 'backup', of: 'map/3/1', end: 'won', facts: numbers },
        { kind: 'stop', of: 'map/3/0', reason: 'sibling-won' },
      ],
      declined: [
        { task: 'map/3', reason: 'no-slot' },
        { task: 'map/1', reason: 'not-worth-it' },
      ],
      failures: [],
      cost: { dollars: 0.0123, wonMs: 11_500, otherMs: 5_550, unheardMs: 0 },
    });
  });

  it('tells of a stage or a task what is about it, and of nothing else', () => {
    const { stages, declined, path, cost } = explain({}, { stage: 'map', task: 1 });
    expect(path).toEqual([]);
    expect(stages.map(({ stage, told }) => [stage, told.map(({ taskId }) => taskId)])).toEqual([
      ['map', ['map/1']],
    ]);
    expect(declined.map(({ task }) => task)).toEqual(['map/1']);
    expect(cost).toMatchObject({ wonMs: 2_000, otherMs: 0 });
    expect(explain({}, { stage: 'map' }).declined).toHaveLength(2);
  });

  it('says it in sentences', () => {
    expect(text().split('\n')).toEqual([
      'wordcount-0123456789ab succeeded after 12.0s (policy outrider).',
      '',
      'Where the time went',
      '     0.5s  to take the job up and plan it',
      '     0.2s  before map/3/0 was launched',
      '     3.3s  from the launch of map/3/0 to that of the attempt that counted',
      '     0.3s  of map/3/1, which waited for its worker',
      '     2.0s  of map/3/1, which ran',
      '     0.7s  before sum/0/0 was launched',
      '     0.5s  of sum/0/0, which waited for its worker',
      '     3.5s  of sum/0/0, which ran',
      '     1.0s  to publish the output and end',
      '',
      'Stage map',
      '  A task usually runs for 2.0s (start 0.2s, read 0.3s, compute 1.4s, write 0.1s) and reads 1000 B: medians of 4 tasks.',
      '  It ended with map/3, 5.8s after the stage began.',
      '  3.3s went by before its copy map/3/1 was launched, since map/3/0 lagged.',
      '  map/3/0 ran on a slow node (slow-one): after 5.0s it had read 40 % of its input, had run for 5.6s when it was seen last, and was to take 5.5 times what is usual; its start, which reads no input, took 5.0 times the usual, and the rest 5.6 times; the same task took 1.0 times the usual on another node.',
      '',
      'Stage sum',
      '  It has 1 task, too few to say what is usual.',
      '  It ended with sum/0, 4.6s after the stage began.',
      '  0.6s went by from the opening of its stage to the launch of sum/0/0.',
      "  sum/0/0 waited 0.5s for its worker, in the host's queue or for its start: the job had not used it before.",
      '  sum/0/0 ran for 3.5s (start 0.2s, read 0.3s, compute 1.4s, write 0.1s).',
      '',
      'Slow nodes',
      '  slow-one: up to 5.5 times slower than usual, shown by map/3/0.',
      '',
      'What was done',
      '  00:16:44 map/3/1 was launched as a backup: 9.0s left to run, 2.1s for a new attempt, 6.9s to be saved, 4.0s of slot time gained. It won.',
      '',
      'What was declined',
      '  1 proposal, since the job had no slot free (no-slot):',
      '    00:16:42 map/3: 9.0s left to run, 2.1s for a new attempt, 6.9s to be saved, 4.0s of slot time gained.',
      '  1 proposal, since another attempt would save too little, or too unlikely (not-worth-it):',
      '    00:16:42 map/1: 0.9s left to run, 2.1s for a new attempt.',
      '',
      'What it cost',
      '  $0.0123 and 16.5s of workers. Attempts that won ran for 11.5s, all others for 5.6s (33 %).',
    ]);
  });

  it('tells a task attempt by attempt', () => {
    expect(text({}, { stage: 'map', task: 3 })).toContain(
      [
        'Its attempts',
        '  map/3/0, the first attempt:',
        '    launched at 00:16:40, waited 0.1s, ran for 5.6s (start 1.0s, read 0.6s, compute 3.4s, write 0.0s), read 400 B of 1000 B, on slow-one in use1-az1. That is 5.5 times the usual for its input.',
        '    It was told to stop, since another attempt of its task had won, and had not answered when it was seen last.',
        '  map/3/1, a backup beside one that lagged (9.0s left to run, 2.1s for a new attempt, 6.9s to be saved, 4.0s of slot time gained):',
        '    launched at 00:16:44, waited 0.3s, ran for 2.0s (start 0.2s, read 0.3s, compute 1.4s, write 0.1s), read 1000 B of 1000 B, on other in use1-az1. That is 1.0 times the usual for its input.',
        '    It won.',
      ].join('\n'),
    );
  });

  it('says why nobody can say what is usual, and of a job that goes on alone that it is not known yet', () => {
    const empty = { read: 0, total: 0 };
    const told = (state: JobRecord['state'], given: readonly AttemptRecord[]): string => {
      const done = given.filter((each) => each.state === 'done').length;
      const facts = {
        job: job({ state, stages: [stageSummary({ name: 'map', tasks: 4, done })] }),
        ...{ attempts: given, decisions: readDecisions([]), now: at(12_000) },
      };
      const explained = explainJob(facts);
      expect(explanationSchema.parse(explained)).toEqual(explained);
      return (
        renderExplanation(explained, makeStyle({ isTty: false, env: {} })).find((each) =>
          each.endsWith('what is usual.'),
        ) ?? ''
      );
    };
    const readers = usualTasks(2);
    const runs = attempt('map/2/0', { state: 'running' });
    const empties = [attempt('map/2/0', empty), attempt('map/3/0', empty)];
    const few = '  It has 4 tasks, ';
    expect(told('succeeded', [...readers, ...empties])).toBe(
      `${few}of which too few had anything to read to say what is usual.`,
    );
    expect(told('running', [...readers, ...empties.slice(0, 1)])).toBe(
      `${few}of which too few have won yet that had anything to read to say what is usual.`,
    );
    expect(told('running', [...readers, runs])).toBe(
      `${few}of which too few have won yet to say what is usual.`,
    );
    for (const state of ['failed', 'cancelled'] as const)
      expect(told(state, [...readers, runs])).toBe(`${few}of which too few won to say what is usual.`);
    const rest = usualTasks(4).map((each) => ({
      ...each,
      ...(each.progress === undefined
        ? {}
        : { progress: { ...each.progress, takenUp: { attempt: 0, bytes: 400 } } }),
    }));
    expect(told('succeeded', [...rest.slice(0, 2), ...usualTasks(4).slice(2)])).toBe(
      `${few}of which too few were timed from the begin to say what is usual.`,
    );
  });

  it('says so where the log is gone, and does not guess why a copy was launched', () => {
    const gone = explain({ given: [] }, { stage: 'map', task: 3 });
    expect(gone.log).toEqual({ state: 'none' });
    expect(gone.stages[0]?.told[0]?.attempts.map(({ reason }) => reason)).toEqual(['first', null]);
    expect(text({ given: [] })).toContain('\nIts log holds none of its decisions: ');
    expect(text({ given: [] }, { stage: 'map', task: 3 })).toContain(
      'map/3/1, why it was launched, the log does not say:',
    );
    expect(explain({ given: lines.slice(3) }).log).toEqual({ state: 'part' });
    expect(text({ given: [], unread: '--log-group is needed' })).toContain(
      '\nWhat was decided, and why, is not told here: --log-group is needed\n',
    );
  });

  it('tells why a job failed, and not more failures than can be read', () => {
    const failure = { cause: 'user-code', message: 'no such colour' } as const;
    const error = { name: 'JobFailed', message: 'task 3 failed alike twice' };
    const facts = {
      job: job({ state: 'failed', error }),
      attempts: Array.from({ length: 12 }, (_, number) =>
        attempt(`map/3/${String(number)}`, { launched: number, state: 'failed', failure }),
      ),
      decisions: readDecisions([]),
      now: at(12_000),
    };
    const lines = renderExplanation(explainJob(facts), makeStyle({ isTty: false, env: {} }));
    expect(lines.slice(0, 2)).toEqual([
      'wordcount-0123456789ab failed after 12.0s (policy outrider).',
      'Why: task 3 failed alike twice',
    ]);
    expect(lines).toContain('  map/3/9: user-code, no such colour.');
    expect(lines).not.toContain('  map/3/10: user-code, no such colour.');
    expect(lines).toContain('  and 2 more.');
    expect(lines).toContain('     9.9s  to end');
  });

  it('has nothing in it that moves a cursor, whatever ids, nodes and zones the records of a job tell', () => {
    const forged = [
      attempt('\u001b[2J/0/0', { launched: 9_000, state: 'failed', ended: 11_500 }),
      ...attempts.map((each) => ({ ...each, zone: '\u009b2J' })),
      ...usualTasks(6, 'sum').map((each) => ({ ...each, node: `\u001b]0;${each.node ?? ''}\u0007` })),
    ];
    const facts = { job: job(), attempts: forged, decisions: readDecisions([]), now: at(12_000) };
    for (const about of [undefined, { stage: 'map', task: 3 }]) {
      const told = renderExplanation(explainJob(facts, about), makeStyle({ isTty: false, env: {} }));
      expect(told.filter((each) => /\p{Cc}/u.test(each))).toEqual([]);
      if (about === undefined) expect(told.join('\n')).toContain('[2J/0/0: unknown');
    }
  });

  it('tells of a job that goes on, as far as it has come', () => {
    const running = jobRecord({
      spec: twoStages,
      state: 'running',
      stages: [stageSummary({ name: 'map', tasks: 4, done: 4 }), stageSummary({ name: 'sum', tasks: 1 })],
    });
    const { wallMs, path } = explain({ of: running });
    expect(wallMs).toBe(12_000);
    expect(path.reduce((sum, { ms }) => sum + ms, 0)).toBe(12_000);
    expect(text({ of: running })).toMatch(/^wordcount-0123456789ab has been running for 12\.0s/);
  });

  it('says of a stage that is not done which task ended last, and not that it ended with that', () => {
    const stages = (done: number, tasks: number) => [
      stageSummary({ name: 'map', tasks: 4, done: 4 }),
      stageSummary({ name: 'sum', tasks, done }),
    ];
    const cancelled = text({ of: job({ state: 'cancelled', stages: stages(1, 2) }) });
    expect(cancelled).toContain('  1 of 2 tasks are done.\n');
    expect(cancelled).toContain(
      '  Of those that are done, the last was sum/0, 4.6s after the stage began.\n',
    );
    expect(text()).toContain('  It ended with sum/0, 4.6s after the stage began.\n');
    expect(text({ of: job({ state: 'cancelled', stages: stages(0, 1) }) })).toContain(
      '  0 of 1 task is done.\n',
    );
  });

  it('says of a deadline whether it was met, and by how much it was not', () => {
    const told = (of: Partial<JobRecord>): string => text({ of: job(of) }).split('\n')[1] ?? '';
    expect(told({ deadlineAt: at(20_000) })).toBe('Its deadline was 1970-01-01 00:17:00Z: it met it.');
    expect(told({ deadlineAt: at(3_000) })).toBe(
      'Its deadline was 1970-01-01 00:16:43Z: it ended 9.0s late.',
    );
    expect(told({ deadlineAt: at(20_000), state: 'cancelled' })).toBe(
      'Its deadline was 1970-01-01 00:17:00Z: the job was cancelled before it.',
    );
    const running = jobRecord({ spec: twoStages, state: 'running', deadlineAt: at(20_000) });
    expect(text({ of: running })).toContain('\nIts deadline is 1970-01-01 00:17:00Z.\n');
    expect(explain({ of: running }).deadline).toEqual({ at: at(20_000), isMet: null });
    const late = { ...running, deadlineAt: at(3_000) };
    expect(explain({ of: late }).deadline).toEqual({ at: at(3_000), isMet: false });
    expect(text({ of: late })).toContain(
      '\nIts deadline was 1970-01-01 00:16:43Z: it has passed, and the job goes on.\n',
    );
    expect(explain({ of: job({ deadlineAt: at(3_000) }) }).deadline).toEqual({
      ...{ at: at(3_000), isMet: false, lateMs: 9_000 },
    });
    expect(explain().deadline).toBeNull();
    expect(text({ of: job({ deadlineAt: at(3_000) }) }, { stage: 'map' })).not.toContain('deadline');
  });

  it('says of a budget whether it was kept, and by how much it was not', () => {
    const told = (budget: number): string | undefined =>
      text({ of: job({ spec: { ...twoStages, budget } }) }).split('\n')[1];
    expect(told(0.02)).toBe('Its budget was $0.0200: it cost no more.');
    expect(told(0.01)).toBe('Its budget was $0.0100: it cost $0.002300 more.');
    expect(explain().budget).toBeNull();
    expect(explain({ of: job({ spec: { ...twoStages, budget: 0.01 } }) }).budget).toEqual({
      dollars: 0.01,
      overDollars: expect.closeTo(0.0023, 9) as number,
    });
  });

  it('has nothing to tell of a job that nothing has begun of', () => {
    const waiting = jobRecord({ state: 'submitted' });
    const facts = { job: waiting, attempts: [], decisions: readDecisions([]), now: at(3_000) };
    expect(explainJob(facts)).toMatchObject({
      state: 'submitted',
      path: [{ kind: 'plan', ms: 3_000 }],
      stages: [],
      log: { state: 'none' },
    });
  });
});
