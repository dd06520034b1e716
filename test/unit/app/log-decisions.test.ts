import { describe, expect, it } from 'vitest';
import { logDecisions } from '../../../src/app/log-decisions.ts';
import type { Session } from '../../../src/app/scheduler-session.ts';
import { attemptIdOf, type JobId, taskIdOf } from '../../../src/contracts/ids.ts';
import type { Decision, Refusal } from '../../../src/core/model/decision.ts';

const jobId = 'job-0123456789ab' as JobId;

function told() {
  const lines: Record<string, unknown>[] = [];
  const write =
    (level: string) =>
    (event: string, facts: Readonly<Record<string, unknown>> = {}) => {
      lines.push({ level, event, ...facts });
    };
  return { lines, log: { info: write('info'), warn: write('warn') } };
}

// Only what the function looks at.
const session = () =>
  ({
    jobId,
    state: { stages: [{ shape: { name: 'map' }, tasks: [] }], attempts: new Map() },
    toldRefusals: new Map(),
    toldNodes: new Set(),
  }) as unknown as Session;

const first = (task: number): Decision => ({
  kind: 'launch',
  attemptId: attemptIdOf('map', task, 0),
  reason: 'first',
});

describe('the log of decisions', () => {
  it('tells who rides with whom, and who is launched by itself after all', () => {
    const { lines, log } = told();
    const behind = attemptIdOf('map', 1, 0);
    const riding = (task: number): Decision => ({
      kind: 'launch',
      attemptId: attemptIdOf('map', task, 0),
      reason: 'first',
      behind,
    });
    const job = session();
    for (let task = 100; task < 125; task++)
      job.state.attempts.set(attemptIdOf('map', task, 0), { behind } as never);
    logDecisions(log, job, { decisions: [first(1), riding(2), first(100)], refusals: [] });
    expect(lines).toEqual([
      { level: 'info', event: 'launched', jobId, attemptId: 'map/1/0', reason: 'first' },
      { level: 'info', event: 'launched', jobId, attemptId: 'map/2/0', reason: 'first', behind: 'map/1/0' },
      {
        level: 'info',
        event: 'launched-alone',
        jobId,
        attemptId: 'map/100/0',
        reason: 'first',
        rodeBehind: 'map/1/0',
      },
    ]);
    lines.splice(0);
    const many = Array.from({ length: 25 }, (_, task) => first(100 + task));
    logDecisions(log, job, { decisions: [first(1), riding(2), riding(3), ...many], refusals: [] });
    const together = { level: 'info', jobId, stage: 'map', reason: 'first' };
    expect(lines).toEqual([
      { ...together, event: 'launched', attempts: 3, riding: 2, from: 'map/1/0', to: 'map/3/0' },
      { ...together, event: 'launched-alone', attempts: 25, from: 'map/100/0', to: 'map/124/0' },
    ]);
  });

  it('tells each decision of a policy, with its reason and its numbers', () => {
    const { lines, log } = told();
    const id = attemptIdOf('map', 3, 1);
    const decisions: Decision[] = [
      { kind: 'open-stage', stage: 0 },
      first(3),
      { kind: 'launch', attemptId: id, reason: 'backup', facts: { savedMs: 7 }, avoidNodes: ['slow'] },
      { kind: 'cancel', attemptId: id, reason: 'sibling-won' },
      { kind: 'lose', attemptId: id, reason: 'silent' },
    ];
    logDecisions(log, session(), { decisions, refusals: [] });
    expect(lines).toEqual([
      { level: 'info', event: 'stage-opened', jobId, stage: 'map' },
      { level: 'info', event: 'launched', jobId, attemptId: 'map/3/0', reason: 'first' },
      {
        level: 'info',
        event: 'launched',
        jobId,
        attemptId: 'map/3/1',
        reason: 'backup',
        avoidNodes: ['slow'],
        savedMs: 7,
      },
      { level: 'info', event: 'told-to-stop', jobId, attemptId: 'map/3/1', reason: 'sibling-won' },
      { level: 'warn', event: 'given-up', jobId, attemptId: 'map/3/1', reason: 'silent' },
    ]);
  });

  it('tells of each partition that is split into how many parts, and by what numbers', () => {
    const { lines, log } = told();
    const facts = { bytes: 900, usualBytes: 100, largestPartBytes: 310, savedMs: 5_900 };
    const splits = [{ task: 2, input: 0, cuts: [3, 7], facts }];
    const decisions: Decision[] = [{ kind: 'open-stage', stage: 0, splits }];
    logDecisions(log, session(), { decisions, refusals: [] });
    expect(lines).toEqual([
      { level: 'info', event: 'stage-opened', jobId, stage: 'map' },
      { level: 'info', event: 'partition-split', jobId, taskId: 'map/2', parts: 3, ...facts },
    ]);
  });

  it('tells which zones the tasks of a stage go to, and what crosses between them', () => {
    const { lines, log } = told();
    const facts = { crossingBytes: 200, spreadBytes: 600, slowestLinkBytes: 150 };
    const zones = ['us-east-1a', 'us-east-1b', 'us-east-1c'];
    const placement = { zones, tasks: [2, 0, 2, 2], facts };
    logDecisions(log, session(), { decisions: [{ kind: 'open-stage', stage: 0, placement }], refusals: [] });
    expect(lines).toEqual([
      { level: 'info', event: 'stage-opened', jobId, stage: 'map' },
      {
        ...{ level: 'info', event: 'stage-placed', jobId, stage: 'map' },
        ...{ zones: '1 us-east-1a, 3 us-east-1c', ...facts },
      },
    ]);
  });

  it('tells a wide stage begun as one line', () => {
    const { lines, log } = told();
    logDecisions(log, session(), {
      decisions: Array.from({ length: 500 }, (_, task) => first(task)),
      refusals: [],
    });
    expect(lines).toEqual([
      {
        level: 'info',
        event: 'launched',
        jobId,
        stage: 'map',
        reason: 'first',
        attempts: 500,
        from: 'map/0/0',
        to: 'map/499/0',
      },
    ]);
  });

  it('tells every refusal once for each task and reason, however many ticks repeat it', () => {
    const { lines, log } = told();
    const refuse = (task: number, reason: Refusal['reason']): Refusal => ({
      kind: 'refuse',
      taskId: taskIdOf('map', task),
      reason,
      facts: { savedMs: 1 },
    });
    const of = session();
    for (let tick = 0; tick < 100; tick++)
      logDecisions(log, of, {
        decisions: [],
        refusals: [refuse(1, 'not-worth-it'), refuse(tick % 2, 'no-slot'), refuse(0, 'clone-budget')],
      });
    expect(
      lines.map(({ event, task, reason }) => `${String(event)} ${String(task)} ${String(reason)}`),
    ).toEqual([
      'refused map/1 not-worth-it',
      'refused map/0 no-slot',
      'not-cloned map/0 clone-budget',
      'refused map/1 no-slot',
    ]);
    expect(lines[0]).toMatchObject({ jobId, savedMs: 1 });
  });

  it('tells once why a node is avoided, as the first launch names it', () => {
    const { lines, log } = told();
    const of = session();
    const node = { zone: 'z', attempts: 2 };
    const blocked = [
      { ...node, node: 'slow', reason: 'slow', slowdown: 3.3 },
      { ...node, node: 'bad', reason: 'failing', slowdown: 1_000 },
      { ...node, node: 'unnamed', reason: 'slow', slowdown: 9 },
    ] as const;
    const launch = (task: number, avoidNodes: readonly string[]): Decision => ({
      kind: 'launch',
      attemptId: attemptIdOf('map', task, 0),
      reason: 'first',
      avoidNodes,
    });
    logDecisions(log, of, { decisions: [launch(0, ['slow', 'own'])], refusals: [] }, blocked);
    const many = Array.from({ length: 30 }, (_, task) => launch(task, ['slow', 'bad']));
    logDecisions(log, of, { decisions: many, refusals: [] }, blocked);
    expect(lines.filter(({ event }) => event === 'node-avoided')).toEqual([
      {
        level: 'info',
        event: 'node-avoided',
        jobId,
        node: 'slow',
        reason: 'slow',
        slowdown: 3.3,
        attempts: 2,
      },
      { level: 'info', event: 'node-avoided', jobId, node: 'bad', reason: 'failing', attempts: 2 },
    ]);
    expect(lines[0]?.['event']).toBe('node-avoided');
  });

  it('tells that a task which is owed an attempt is refused also where a copy of it was', () => {
    const { lines, log } = told();
    const of = session();
    const attempts = [{ state: 'running' }];
    Object.assign(of.state.stages[0] ?? {}, { tasks: [{ attempts }] });
    const refusals: Refusal[] = [{ kind: 'refuse', taskId: taskIdOf('map', 0), reason: 'budget' }];
    for (const state of ['running', 'failed', 'failed', 'running']) {
      attempts[0] = { state };
      logDecisions(log, of, { decisions: [], refusals });
    }
    expect(lines).toHaveLength(2);
  });
});
