import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../src/contracts/units.ts';
import { isAbout, isAtLeast, readLogLine, renderLogEvent } from '../../../src/report/log-lines.ts';
import { makeStyle } from '../../../src/report/style.ts';

const plain = makeStyle({ isTty: false, env: {} });
const at = epochMs(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
const lineOf = (facts: object) => ({
  at,
  source: 'stream',
  text: JSON.stringify({ at: '2026-01-02T03:04:05.678Z', level: 'info', jobId: 'j', ...facts }),
});
const shown = (facts: object): string => renderLogEvent(readLogLine(lineOf(facts)), plain);

describe('a line of a log', () => {
  it.each([
    [
      { event: 'user-output', attemptId: 'map/3/0', stream: 'stdout', text: 'hello\u001b[31m' },
      '03:04:05.678 map/3/0 | hello',
    ],
    [
      { event: 'user-output', attemptId: 'map/3/0', stream: 'stderr', text: 'careful' },
      '03:04:05.678 map/3/0 ! careful',
    ],
    [
      { event: 'launched', attemptId: 'map/3/1', reason: 'backup', gainMs: 1234.56789, nodes: ['a'] },
      '03:04:05.678 map/3/1 launched  reason backup, gainMs 1234.568, nodes ["a"]',
    ],
    [
      { event: 'refused', task: 'map/3', reason: 'not-worth-it' },
      '03:04:05.678 map/3 refused  reason not-worth-it',
    ],
    [
      {
        event: 'attempt-ended',
        attemptId: 'map/3/0',
        outcome: 'failed',
        failure: { cause: 'user-code', message: 'x.ts:3: boom' },
      },
      '03:04:05.678 map/3/0 error: attempt ended  user-code: x.ts:3: boom  outcome failed',
    ],
  ])('is what it says, for people: %j', (facts, text) => {
    expect(shown(facts)).toContain(text);
  });

  it('is shown as it is where it is no event', () => {
    const event = readLogLine({ at, source: 's', text: '{"half": ' });
    expect(renderLogEvent(event, plain)).toBe('03:04:05.678 {"half":');
  });

  it('has a level: standard error warns, a failed attempt is an error', () => {
    const levelOf = (facts: object) => readLogLine(lineOf(facts)).level;
    expect(levelOf({ event: 'user-output', stream: 'stdout' })).toBe('info');
    expect(levelOf({ event: 'user-output', stream: 'stderr' })).toBe('warn');
    expect(levelOf({ event: 'user-output', stream: 'stderr', level: 'error' })).toBe('error');
    expect(levelOf({ event: 'given-up', level: 'warn' })).toBe('warn');
    expect(levelOf({ event: 'attempt-ended', outcome: 'failed' })).toBe('error');
    expect(levelOf({ event: 'attempt-ended', outcome: 'done' })).toBe('info');
    const warning = readLogLine(lineOf({ event: 'x', level: 'warn' }));
    expect([isAtLeast(warning, 'info'), isAtLeast(warning, 'error')]).toEqual([true, false]);
  });

  it('is about a stage, a task or an attempt, and about no other of a like name', () => {
    const event = readLogLine(lineOf({ event: 'launched', attemptId: 'map/1/0' }));
    expect(
      ['map', 'map/1', 'map/1/0', 'map/10', 'map/1/1', 'ma'].map((each) => isAbout(event, each)),
    ).toEqual([true, true, true, false, false, false]);
  });
});
