import { describe, expect, it } from 'vitest';
import { logDecisions } from '../../../../src/app/log-decisions.ts';
import type { Session } from '../../../../src/app/scheduler-session.ts';
import { attemptIdOf, type AttemptId, type JobId, taskIdOf } from '../../../../src/contracts/ids.ts';
import { type LossKind, lossKinds } from '../../../../src/contracts/records.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import type { Decision, LaunchReason, Refusal, RefusalReason } from '../../../../src/core/model/decision.ts';
import { createJobState } from '../../../../src/core/model/job-state.ts';
import { protect } from '../../../../src/core/policy/mantri/protect.ts';
import { readDecisions } from '../../../../src/report/explain/decision-events.ts';
import { actionSentences, refusalSentences } from '../../../../src/report/explain/decision-sentences.ts';
import { readLogLine } from '../../../../src/report/log-lines.ts';

const jobId = 'job-0123456789ab' as JobId;
const attemptId = attemptIdOf('map', 0, 0);

// Only what the log of decisions looks at.
const session = (): Session => {
  const attempt = { id: attemptId, number: 0, state: 'done' };
  const task = { stage: 0, index: 0, attempts: [attempt], replicas: [], result: { attemptId } };
  const stage = { index: 0, shape: { name: 'map', upstream: [] }, tasks: [task] };
  const state = { stages: [stage], stageOf: new Map([['map', stage]]), attempts: new Map() };
  return { jobId, state, toldRefusals: new Map(), toldNodes: new Set() } as unknown as Session;
};

/** What is read of the lines that a tick leaves, each logged a second after the one before. */
function told(decisions: readonly Decision[], refusals: readonly Refusal[] = []) {
  const lines: { readonly at: ReturnType<typeof epochMs>; readonly source: string; readonly text: string }[] =
    [];
  const write =
    (level: string) =>
    (event: string, facts: Readonly<Record<string, unknown>> = {}): void => {
      const at = epochMs(Date.UTC(2026, 0, 2, 3, 4, lines.length));
      lines.push({ at, source: 's', text: JSON.stringify({ at: new Date(at), level, event, ...facts }) });
    };
  logDecisions({ info: write('info'), warn: write('warn') }, session(), { decisions, refusals });
  return readDecisions(lines.map(readLogLine));
}

const launch = (reason: LaunchReason): Decision => ({
  kind: 'launch',
  attemptId,
  reason,
  ...(reason === 'first' ? { zone: 'us-east-1b', facts: { locationFactor: 0.8 } } : {}),
});

/** One of each reason: a reason that is added does not compile without. */
const launches: Readonly<Record<LaunchReason, Decision>> = {
  first: launch('first'),
  retry: launch('retry'),
  recompute: launch('recompute'),
  restart: launch('restart'),
  backup: launch('backup'),
  clone: launch('clone'),
};

const lost = (how: LossKind): Decision => ({ kind: 'lose-output', attemptId, how });

/** Of each kind of decision, so is a kind. That a stage is opened is told as the beginning of its time. */
const decisions: { readonly [Kind in Exclude<Decision['kind'], 'open-stage'>]: readonly Decision[] } = {
  'lose-output': lossKinds.map(lost),
  'copy-output': (['worth', 'spell'] as const).map((reason) => ({
    ...{ kind: 'copy-output', attemptId, bytes: 10, reason, facts: { lossCostMs: 7 } },
  })),
  'clone-stage': [{ kind: 'clone-stage', stage: 0, copies: 2, tasks: 1, facts: {} }],
  'preempt-clones': [{ kind: 'preempt-clones', stage: 0, by: jobId, facts: {} }],
  allocate: [{ kind: 'allocate', slots: 2, smoothed: 1.5, reason: 'admitted', facts: {} }],
  launch: Object.values(launches),
  cancel: [{ kind: 'cancel', attemptId, reason: 'pruned' }],
  lose: [{ kind: 'lose', attemptId, reason: 'silent' }],
};

const reasons: Readonly<Record<RefusalReason, true>> = {
  ...{ 'no-slot': true, 'tick-full': true, 'backing-off': true, 'last-live-copy': true, 'task-done': true },
  ...{ 'copy-limit': true, 'copy-cap': true, 'loss-limit': true, 'restart-limit': true, 'recent-copy': true },
  ...{ 'slow-node': true, 'slow-zone': true, 'input-explained': true, 'not-worth-it': true },
  ...{ 'still-starting': true, 'awaiting-copy': true, 'input-lost': true, budget: true, 'gives-way': true },
  ...{ 'replica-not-worth-it': true, 'too-few-tokens': true, 'precompute-budget': true },
  ...{ unmeasured: true, 'deadline-slack': true, 'clone-budget': true, utilization: true },
};

describe('what a tick has decided', () => {
  it.each(Object.entries(decisions))('is told as something that was done: %s', (_kind, all) => {
    for (const decision of all) {
      const { actions } = told([decision]);
      expect([decision, actions.length]).toEqual([decision, 1]);
      const [sentence = ''] = actionSentences(actions);
      expect(sentence).toMatch(/^03:04:00 .{20}/);
      expect(sentence).not.toMatch(/undefined|NaN/);
    }
  });

  it('is told of a stage as when it was opened, and where its tasks went and were split as something done', () => {
    const facts = { bytes: 9 };
    const { opened, actions } = told([
      {
        ...{ kind: 'open-stage', stage: 0, splits: [{ task: 2, input: 0, cuts: [3], facts }] },
        placement: { zones: ['a', 'b'], tasks: [0, 1], facts: {} },
      },
    ]);
    expect([...opened]).toEqual([['map', Date.UTC(2026, 0, 2, 3, 4, 0)]]);
    expect(actions.map(({ kind, of }) => [kind, of])).toEqual([
      ['split', 'map/2'],
      ['place', 'map'],
    ]);
    const again = told([{ kind: 'open-stage', stage: 0, revision: 1 }]);
    expect(again.renewed.map(({ stage }) => stage)).toEqual(['map']);
  });

  it('is told as something declined where it was refused, for whatever reason', () => {
    for (const reason of Object.keys(reasons) as RefusalReason[]) {
      const refusal: Refusal = {
        ...{ kind: 'refuse', taskId: taskIdOf('map', 0), reason, facts: { lossCostMs: 1 } },
      };
      const { declined } = told([], [refusal]);
      expect(declined).toEqual([
        { at: Date.UTC(2026, 0, 2, 3, 4, 0), task: 'map/0', reason, facts: { lossCostMs: 1 } },
      ]);
      expect(refusalSentences(declined)[0]).toMatch(new RegExp(`since .{20}.*\\(${reason}\\):$`));
    }
  });

  it('tells which outputs were copied and which not, with the numbers of either', () => {
    const facts = { lossProbability: 0.001, redoMs: 1_070, lossCostMs: 1.07, copyMs: 43, tokens: 2_048 };
    const { actions, declined } = told(
      [{ kind: 'copy-output', attemptId, bytes: 10, reason: 'worth', facts }],
      [{ kind: 'refuse', taskId: taskIdOf('map', 0), reason: 'replica-not-worth-it', facts }],
    );
    const numbers =
      'a chance of 0.1 % to be lost, 1.1s to make it again, 0.0s lost in the mean, 0.0s to copy it, 2.0 KiB that may be copied';
    expect(actionSentences(actions)).toEqual([
      `03:04:00 map/0/0 was to have its output copied, since its loss was expected to cost more than the copy: ${numbers}.`,
    ]);
    expect(refusalSentences(declined)).toEqual([
      'copies of outputs of 1 stage, since its loss would cost less than the copy (replica-not-worth-it):',
      `  03:04:01 map: ${numbers}.`,
    ]);
  });

  it('tells by what is left for copies in a spell of losses which of them were made', () => {
    const shape = { name: 'map', tasks: 2, upstream: [], sourceBytes: [1, 1] };
    const state = createJobState([shape]);
    const [quick, dear] = (state.stages[0]?.tasks ?? []).map((task) => {
      const id = attemptIdOf('map', task.index, 0);
      const result = { taskId: taskIdOf('map', task.index), attemptId: id, committedAt: epochMs(0) };
      task.result = { ...result, bytesIn: 1, bytesOut: 2_048, recordsIn: 1, recordsOut: 1, counters: {} };
      const copyMs = 1_000 + 4_000 * task.index;
      return { task, lossProbability: 0, copyLossProbability: 0, redoMs: 10_000, copyMs, bytes: 2_048 };
    });
    if (quick === undefined || dear === undefined) throw new Error('no tasks');
    const { copies, declined: refused } = protect(state, {
      ...{ outputs: [], tokens: 0, inSpell: [quick, dear], spellLeftMs: 4_500, most: 9 },
    });
    const { actions, declined } = told(
      copies,
      refused.map(({ refusal }) => refusal),
    );
    const numbers = (copy: string, left: string): string =>
      `a chance of 0 % to be lost, 10.0s to make it again, 0.0s lost in the mean, ${copy} to copy it, 2.0 KiB in it, ${left} left for copies beside lost outputs`;
    expect(actionSentences(actions)).toEqual([
      `03:04:00 map/0/0 was to have its output copied, since others were just lost where it lies: ${numbers('1.0s', '4.5s')}.`,
    ]);
    expect(refusalSentences(declined)).toEqual([
      'copies of outputs of 1 stage, since the time for outputs beside lost ones was used up (precompute-budget):',
      `  03:04:01 map: ${numbers('5.0s', '3.5s')}.`,
    ]);
  });

  it('tells how an output was lost, who found that, and which copy is read instead', () => {
    const { actions } = told([
      { kind: 'lose-output', attemptId, how: 'short', by: 'sum/1/0' as AttemptId, use: 1_000_000 },
      { kind: 'lose-output', attemptId, how: 'unreachable' },
    ]);
    expect(actions).toMatchObject([
      { kind: 'lose-output', how: 'short', foundBy: 'sum/1/0', readInstead: 'map/0/1000000' },
      { kind: 'lose-output', how: 'unreachable' },
    ]);
    expect(actionSentences(actions)).toEqual([
      '03:04:00 map/0/0 had left an output that sum/1/0 found cut short; map/0/1000000 is read instead.',
      '03:04:01 map/0/0 had left an output that was found out of reach.',
    ]);
  });

  it('tells of first attempts by the dozen where each zone was chosen, and by what', () => {
    const sent = (task: number): Decision => ({
      ...{ kind: 'launch', attemptId: attemptIdOf('map', task, 0), reason: 'first' },
      ...(task % 5 === 0
        ? { zone: 'us-east-1c', facts: { locationFactor: 0.9 } }
        : { zone: 'us-east-1b', facts: { locationFactor: 0.5 } }),
    });
    const { actions } = told(Array.from({ length: 25 }, (_, task) => sent(task)));
    expect(actionSentences(actions)).toEqual([
      '03:04:00 5 first attempts of map went to us-east-1c, since tasks are slower in another zone: its zone 0.9 times as slow as where the others ran.',
      '03:04:01 20 first attempts of map went to us-east-1b, since tasks are slower in another zone: its zone 0.5 times as slow as where the others ran.',
    ]);
  });

  it.each([1, 3, 30])('tells of %i first attempts that went to Fargate, and by what numbers', (count) => {
    const moved = (task: number): Decision => ({
      ...{ kind: 'launch', attemptId: attemptIdOf('map', task, 0), reason: 'first' },
      ...(task < count
        ? {
            worker: { kind: 'fargate', size: 'medium' },
            facts: { lambdaMs: 840_000, forecastMs: 1_200_000, ended: 5 },
          }
        : {}),
    });
    const { actions } = told(Array.from({ length: count + 2 }, (_, task) => moved(task)));
    const who = {
      1: 'map/0/0',
      3: 'map/0/0 and 2 first attempts after it',
      30: '30 first attempts of map',
    };
    expect(actionSentences(actions)).toEqual([
      `03:04:00 ${who[count as keyof typeof who]} went to fargate medium, to have more time than Lambda gives: at most 14m00s on Lambda, 20m00s foretold, 5 tasks seen to end.`,
    ]);
  });

  it('tells apart first attempts that went to Fargate from those that went to another zone', () => {
    const zoned = { zone: 'us-east-1b', facts: { locationFactor: 0.5 } };
    const worker = { kind: 'fargate', size: 'large' } as const;
    const { actions } = told([
      { kind: 'launch', attemptId: attemptIdOf('map', 0, 0), reason: 'first', ...zoned },
      { kind: 'launch', attemptId: attemptIdOf('map', 1, 0), reason: 'first', ...zoned, worker },
    ]);
    const numbers = 'its zone 0.5 times as slow as where the others ran';
    expect(actionSentences(actions)).toEqual([
      `03:04:00 map/0/0 went to us-east-1b, since tasks are slower in another zone: ${numbers}.`,
      `03:04:01 map/1/0 went to fargate large in us-east-1b: ${numbers}.`,
    ]);
  });

  it('says why a job copies no output at all, where its storage loses none', () => {
    const text = JSON.stringify({
      ...{ event: 'nothing-copied', jobId, storage: 'standard', why: 'S3 Standard is made to lose none' },
      ...{ lossProbability: 1e-11, redoMs: 2_000 },
    });
    const { actions } = readDecisions([
      readLogLine({ at: epochMs(Date.UTC(2026, 0, 2, 3, 4, 0)), source: 's', text }),
    ]);
    expect(actions.map(({ kind, of }) => [kind, of])).toEqual([['nothing-copied', undefined]]);
    expect(actionSentences(actions)).toEqual([
      '03:04:00 the job copied no outputs, since S3 Standard is made to lose none: a chance of less than 0.01 % to be lost, 2.0s to make it again.',
    ]);
  });
});
