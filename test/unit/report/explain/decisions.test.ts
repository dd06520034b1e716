import { describe, expect, it } from 'vitest';
import { factNames } from '../../../../src/contracts/fact-names.ts';
import { readDecisions } from '../../../../src/report/explain/decision-events.ts';
import { actionSentences, refusalSentences } from '../../../../src/report/explain/decision-sentences.ts';
import { factsText } from '../../../../src/report/explain/facts-text.ts';
import { readLogLine } from '../../../../src/report/log-lines.ts';
import { epochMs } from '../../../../src/contracts/units.ts';

const told = (...lines: readonly (readonly [string, object])[]) =>
  readDecisions(
    lines.map(([event, facts], second) => {
      const at = epochMs(Date.UTC(2026, 0, 2, 3, 4, second));
      const text = JSON.stringify({
        at: new Date(at).toISOString(),
        level: 'info',
        event,
        jobId: 'j',
        ...facts,
      });
      return readLogLine({ at, source: 's', text });
    }),
  );

describe('decisions in a log', () => {
  it('are told in sentences, with the numbers by which they were taken', () => {
    const { actions } = told(
      ['cloned', { stage: 'map', copies: 2, tasks: 3, stragglerProbability: 0.1 }],
      ['launched', { attemptId: 'map/1/1', reason: 'clone', copies: 2 }],
      ['launched', { attemptId: 'map/1/0', reason: 'first' }],
      ['given-up', { attemptId: 'map/2/0', reason: 'silent' }],
      ['launched', { attemptId: 'map/2/1', reason: 'retry' }],
      ['told-to-stop', { attemptId: 'map/3/0', reason: 'restarted', remMs: 60_000, newMs: 20_000 }],
      ['told-to-stop', { attemptId: 'map/1/1', reason: 'sibling-won' }],
      ['clones-preempted', { stage: 'map', jobTasks: 9 }],
      ['attempt-declined', { attemptId: 'map/4/1', node: 'worker/slow' }],
      ['allocated', { slots: 7, reason: 'adjusted', raw: 6.25 }],
      [
        'stage-placed',
        { stage: 'sum', zones: '1 us-east-1a, 3 us-east-1c', crossingBytes: 2_048, spreadBytes: 6_144 },
      ],
    );
    expect(actionSentences(actions)).toEqual([
      '03:04:00 map was to be cloned: 2 copies of each task, 3 tasks, 10 % of attempts taken to straggle.',
      '03:04:01 map/1/1 was launched as a clone: 2 copies of each task.',
      '03:04:03 map/2/0 was given up, since its worker stopped reporting.',
      '03:04:04 map/2/1 was launched again, after an attempt that came to nothing.',
      '03:04:05 map/3/0 was told to stop, since a new attempt was to end sooner: 1m00s left to run, 20.0s for a new attempt.',
      '03:04:07 map lost its clones to a smaller job: 9 tasks here.',
      '03:04:08 map/4/1 was declined by its worker, whose node its launch says to avoid (worker/slow).',
      '03:04:09 the job asked for 7 slots of its own from then on, by how far it was from its deadline: 6.25 before that was smoothed.',
      '03:04:10 sum had its tasks sent to zones by where their input lies (1 us-east-1a, 3 us-east-1c): 2.0 KiB between zones, 6.0 KiB if tasks were anywhere.',
    ]);
  });

  it('say why a node is avoided that has declined an attempt, where another job or this one found that out', () => {
    const { actions } = told(
      ['node-avoided', { node: 'worker/slow', reason: 'slow', slowdown: 3.333, attempts: 2 }],
      ['node-avoided', { node: 'worker/bad', reason: 'failing', attempts: 1 }],
      ['attempt-declined', { attemptId: 'map/4/1', node: 'worker/slow' }],
      ['attempt-declined', { attemptId: 'map/5/1', node: 'worker/bad' }],
    );
    expect(actionSentences(actions)).toEqual([
      '03:04:02 map/4/1 was declined by its worker, whose node its launch says to avoid (worker/slow): 2 attempts there took at least 3.3 times the usual.',
      '03:04:03 map/5/1 was declined by its worker, whose node its launch says to avoid (worker/bad): 1 attempt there ended with its process, and none well.',
    ]);
  });

  it('say that a launch was declined once, not also that it was lost, and that the task had failed there', () => {
    const { actions } = told(
      ['launched', { attemptId: 'map/4/1', reason: 'retry' }],
      ['attempt-declined', { attemptId: 'map/4/1', node: 'worker/bad' }],
      ['launched', { attemptId: 'map/4/2', reason: 'retry' }],
    );
    const ended = actions.map((action) => {
      if (action.of !== 'map/4/1') return { ...action, end: 'won' as const };
      const isDecline = action.kind === 'decline';
      return { ...action, end: 'lost' as const, ...(isDecline ? { facts: { failedThere: 1 } } : {}) };
    });
    expect(actionSentences(ended)).toEqual([
      '03:04:00 map/4/1 was launched again, after an attempt that came to nothing.',
      '03:04:01 map/4/1 was declined by its worker, whose node its launch says to avoid (worker/bad): 1 attempt of its task failed there.',
      '03:04:02 map/4/2 was launched again, after an attempt that came to nothing. It won.',
    ]);
  });

  it('are grouped by reason where they were refusals, those without numbers as waits', () => {
    const refusals = [0, 1, 2, 3].map((task): [string, object] => [
      'refused',
      { task: `map/${String(task)}`, reason: 'not-worth-it', remMs: 1_000 * task },
    ]);
    const { declined } = told(['refused', { task: 'map/9', reason: 'no-slot' }], ...refusals, [
      'not-cloned',
      { task: 'sum/0', reason: 'clone-budget', tasks: 4 },
    ]);
    expect(refusalSentences(declined)).toEqual([
      '4 proposals, since another attempt would save too little, or too unlikely (not-worth-it):',
      '  03:04:01 map/0: 0.0s left to run.',
      '  03:04:02 map/1: 1.0s left to run.',
      '  03:04:03 map/2: 2.0s left to run.',
      '  and 1 more.',
      '1 launch that had to wait, since the job had no slot free (no-slot): map/9 at 03:04:00.',
      'clones of 1 stage, since clones take as many slots as they may (clone-budget):',
      '  03:04:05 sum: 4 tasks.',
    ]);
  });

  it('name the zone of a copy, and by how much it is slower or faster', () => {
    const { actions, declined } = told(
      [
        'launched',
        {
          ...{ attemptId: 'map/1/1', reason: 'backup', zone: 'us-east-1b', newMs: 2_000 },
          ...{ locationFactor: 0.4001, zoneSamples: 3 },
        },
      ],
      [
        'refused',
        { task: 'map/2', reason: 'slow-zone', zone: 'us-east-1c', locationFactor: 1.3333, zoneSamples: 9 },
      ],
    );
    expect(actionSentences(actions)).toEqual([
      '03:04:00 map/1/1 was launched as a backup in us-east-1b: 2.0s for a new attempt, its zone 0.4 times as slow as where the others ran, 3 runs there.',
    ]);
    expect(refusalSentences(declined)).toEqual([
      '1 proposal, since all zones where another attempt may run are slower (slow-zone):',
      '  03:04:01 map/2 in us-east-1c: its zone 1.33 times as slow as where the others ran, 9 runs there.',
    ]);
  });

  it('tell once of first attempts that went to a zone, by stage and zone', () => {
    const sent = (attemptId: string, zone: string, locationFactor: number): [string, object] => [
      'launched',
      { attemptId, reason: 'first', zone, locationFactor, zoneSamples: 4 },
    ];
    const { actions } = told(
      sent('map/4/0', 'us-east-1b', 0.8),
      sent('map/5/0', 'us-east-1b', 0.5),
      sent('sum/0/0', 'us-east-1b', 0.7),
      sent('map/6/0', 'us-east-1b', 0.5),
    );
    expect(actions.map(({ kind, of, zone }) => [kind, of, zone])).toEqual([
      ['steer', 'map/4/0', 'us-east-1b'],
      ['steer', 'map/5/0', 'us-east-1b'],
      ['steer', 'sum/0/0', 'us-east-1b'],
      ['steer', 'map/6/0', 'us-east-1b'],
    ]);
    expect(actionSentences(actions)).toEqual([
      '03:04:00 map/4/0 and 2 first attempts after it went to us-east-1b, since tasks are slower in another zone: its zone 0.8 times as slow as where the others ran, 4 runs there.',
      '03:04:02 sum/0/0 went to us-east-1b, since tasks are slower in another zone: its zone 0.7 times as slow as where the others ran, 4 runs there.',
    ]);
  });

  it('tell of a launch once that the host refused until it was made again, and not of one that it refused for good', () => {
    const { actions, throttled } = told(
      ['launched', { attemptId: 'sum/2/1', reason: 'retry' }],
      ['throttled', { attemptId: 'sum/2/1' }],
      ['launched', { attemptId: 'sum/2/1', reason: 'retry' }],
      ['throttled', { attemptId: 'sum/2/1' }],
      ['launched', { attemptId: 'sum/2/1', reason: 'retry' }],
      ['launched', { attemptId: 'sum/3/1', reason: 'backup' }],
      ['throttled', { attemptId: 'sum/3/1' }],
    );
    expect(actionSentences(actions)).toEqual([
      '03:04:04 sum/2/1 was launched again, after an attempt that came to nothing.',
    ]);
    expect(throttled.map(({ attemptId }) => attemptId)).toEqual(['sum/2/1', 'sum/2/1', 'sum/3/1']);
  });

  it('are none in what user code prints, though it looks like them', () => {
    const text = JSON.stringify({ event: 'launched', attemptId: 'map/0/1', reason: 'backup' });
    const { actions, launches, state } = told([
      'user-output',
      { attemptId: 'map/0/0', stream: 'stdout', text },
    ]);
    expect([actions, launches.size, state]).toEqual([[], 0, 'none']);
  });

  it('tell numbers by their units where they have no words of their own', () => {
    expect(factsText({ ranMs: 61_000, budgetDollars: 1.5, oddBytes: 2_048, oddMs: 90, odd: 0.333333 })).toBe(
      '1m01s run so far, a budget of $1.50, oddBytes 2.0 KiB, oddMs 0.1s, odd 0.33',
    );
  });

  it('tell every number that a decision may rest on in words, and never by its name', () => {
    for (const name of factNames.filter((each) => each !== 'deltaMs')) {
      for (const value of [0, 0.25, 1, 2_000]) {
        const text = factsText({ [name]: value });
        expect(text, name).toMatch(/\d/);
        expect(text, name).not.toMatch(/\b[a-z]+[A-Z]|NaN|undefined|#/);
        if (name.toLowerCase() !== name) expect(text, name).not.toContain(name);
      }
    }
    expect(factsText({ deltaMs: 7 })).toBe('');
  });

  it('tell one number beside others in what it means there', () => {
    expect(factsText({ copies: 1, tasks: 1 })).toBe('1 copy of each task, 1 task');
    expect(factsText({ remMs: 2_000, copies: 1 })).toBe('2.0s left to run, 1 attempt at work');
    expect(factsText({ probability: 0.4 })).toBe('a chance of 40 % that a copy saves slot time');
    expect(factsText({ raw: 2, probability: 0.956 })).toBe(
      '2 before that was smoothed, a chance of 96 % to meet it',
    );
  });

  it('tell what became of the slots of a deadline as it was, with and without slots', () => {
    const { actions } = told(
      ['allocated', { slots: 3, reason: 'admitted', raw: 2.5, guaranteed: 3, probability: 0.9 }],
      ['allocated', { slots: 0, reason: 'best-effort', totalSlots: 4 }],
      ['allocated', { slots: 0, reason: 'best-effort', needed: 9, totalSlots: 4 }],
      ['allocated', { slots: 0, reason: 'wrong-forecast', workFactor: 2.5, finishedTasks: 3 }],
      ['allocated', { slots: 0, reason: 'deadline-changed' }],
      ['allocated', { slots: 2, reason: 'of-another-version' }],
    );
    expect(actionSentences(actions)).toEqual([
      '03:04:00 the job was given 3 slots of its own for its deadline: 2.5 before that was smoothed, 3 granted, a chance of 90 % to meet it.',
      '03:04:01 the job went on without slots of its own, since it could not meet its deadline with those that it might have: 4 slots in all.',
      '03:04:02 the job went on without slots of its own, since it could not meet its deadline with those that it might have: 9 slots needed, 4 slots in all.',
      '03:04:03 the job went on without slots of its own, since it went otherwise than its forecast had said: 2.5 times the work that was foretold, by 3 tasks that ended.',
      '03:04:04 the job asked for no slots of its own from then on, since its deadline was changed.',
      '03:04:05 the job asked for slots of its own for its deadline (of-another-version).',
    ]);
  });

  it('are told by the first of each kind and reason where they are many', () => {
    const stopped = Array.from({ length: 1_000 }, (_, task): [string, object] => [
      'told-to-stop',
      { attemptId: `map/${String(task)}/0`, reason: 'job-cancelled' },
    ]);
    const { actions } = told(
      ['launched', { attemptId: 'map/7/1', reason: 'backup' }],
      ...Array.from({ length: 4 }, (_, task): [string, object] => [
        'attempt-declined',
        { attemptId: `map/${String(task)}/1`, node: `worker/${String(task)}` },
      ]),
      ...stopped,
    );
    expect(actions).toHaveLength(1_005);
    expect(actionSentences(actions)).toEqual([
      '03:04:00 map/7/1 was launched as a backup.',
      '03:04:01 map/0/1 was declined by its worker, whose node its launch says to avoid (worker/0).',
      '03:04:02 map/1/1 was declined by its worker, whose node its launch says to avoid (worker/1).',
      '03:04:03 map/2/1 was declined by its worker, whose node its launch says to avoid (worker/2).',
      '  and 1 more declined attempt.',
      '03:04:05 map/0/0 was told to stop, since the job was cancelled.',
      '03:04:06 map/1/0 was told to stop, since the job was cancelled.',
      '03:04:07 map/2/0 was told to stop, since the job was cancelled.',
      '  and 997 more stops, since the job was cancelled.',
    ]);
  });

  it('count many lost outputs, and how many of many backups won, by what they are called', () => {
    const lost = told(
      ...Array.from({ length: 25 }, (_, task): [string, object] => [
        'output-lost',
        { attemptId: `map/${String(task)}/0` },
      ]),
    );
    const sentences = actionSentences(lost.actions);
    expect(sentences).toHaveLength(4);
    expect(sentences[3]).toBe('  and 22 more lost outputs.');
    const backups = Array.from({ length: 25 }, (_, task): [string, object] => [
      'launched',
      { attemptId: `map/${String(task)}/1`, reason: 'backup' },
    ]);
    const ended = told(...backups).actions.map((action, task) => ({
      ...action,
      end: task % 5 === 0 ? ('won' as const) : ('stopped' as const),
    }));
    expect(actionSentences(ended).at(-1)).toBe('  and 22 more backups, of which 4 won.');
  });

  it('tell of first attempts that went to a zone also where an older log does not name it', () => {
    const { actions } = told([
      'launched',
      { stage: 'map', reason: 'first', attempts: 4, locationFactor: 0.5 },
    ]);
    expect(actionSentences(actions)).toEqual([
      '03:04:00 4 first attempts of map went to another zone, since tasks are slower in one: its zone 0.5 times as slow as where the others ran.',
    ]);
  });

  it('tell what each scheduler of a job has said anew once, by the latest numbers of a stage', () => {
    const session = (tasks: number): readonly [string, object][] => [
      ['entered', { scheduler: 's' }],
      ['not-copied', { attemptId: 'map/0/0', reason: 'replica-not-worth-it', tasks }],
      ['nothing-copied', { why: 'S3 Standard is made to lose none' }],
    ];
    const { actions, declined } = told(...session(3), ...session(5));
    expect(refusalSentences(declined)).toEqual([
      'copies of outputs of 1 stage, since its loss would cost less than the copy (replica-not-worth-it):',
      '  03:04:04 map: 5 tasks.',
    ]);
    expect(actionSentences(actions)).toEqual([
      '03:04:02 the job copied no outputs, since S3 Standard is made to lose none.',
    ]);
  });

  it('tell on what an attempt was launched where that is not the worker of its stage', () => {
    const { actions } = told(['launched', { attemptId: 'map/1/1', reason: 'retry', worker: 'lambda large' }]);
    expect(actionSentences(actions)).toEqual([
      '03:04:00 map/1/1 was launched again, after an attempt that came to nothing, on lambda large.',
    ]);
  });
});
