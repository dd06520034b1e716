import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type EventBusOptions, type LocalRule, startEventBus } from '../../../src/local/events/event-bus.ts';
import { matchesPattern, patternProblem } from '../../../src/local/events/pattern.ts';

const pattern = {
  source: ['aws.states'],
  detail: { status: ['ABORTED', 'FAILED'], count: [1, null] },
};
const event = { source: 'aws.states', detail: { status: 'FAILED', count: 1, more: true } };

describe('an event pattern', () => {
  it.each([
    [event, true],
    [{ ...event, source: 'aws.s3' }, false],
    [{ ...event, source: ['aws.s3', 'aws.states'] }, true],
    [{ source: 'aws.states' }, false],
    [{ ...event, detail: { status: 'FAILED' } }, false],
    [{ ...event, detail: { status: 'FAILED', count: null } }, true],
    [{ ...event, detail: { status: 'FAILED', count: '1' } }, false],
    [{ ...event, detail: { status: 'SUCCEEDED', count: 1 } }, false],
    [{ ...event, detail: 'FAILED' }, false],
  ])('of %# matches as on AWS', (given, answer) => {
    expect(matchesPattern(pattern, given)).toBe(answer);
  });

  it.each([
    [{ source: [{ prefix: 'aws.' }] }, 'source'],
    [{ detail: { status: [{ 'anything-but': ['RUNNING'] }] } }, 'detail.status'],
    [{ $or: [{ source: ['a'] }] }, '$or'],
    [{ source: 'aws.states' }, 'source'],
    [{ source: [] }, 'source'],
    [{}, ''],
  ])('%j is refused by the path at fault', (given, path) => {
    expect(patternProblem(pattern)).toBeUndefined();
    expect(patternProblem(given)?.path).toBe(path);
  });
});

describe('the event bus', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const rules: readonly LocalRule[] = [
    { name: 'ends', arn: 'arn:ends', trigger: { kind: 'pattern', pattern }, targets: ['settle', 'tell'] },
    { name: 'hourly', arn: 'arn:hourly', trigger: { kind: 'rate', everyMs: 3_600_000 }, targets: ['sweep'] },
  ];

  function start(more: Partial<EventBusOptions> = {}) {
    const delivered: string[] = [];
    const deliver = (name: string): boolean => delivered.push(name) > 0;
    const place = { region: 'us-east-1', accountId: '000000000000', ready: Promise.resolve() };
    return { delivered, bus: startEventBus({ ...place, rules, deliver, isLate: false, ...more }) };
  }

  it('delivers to every target of each rule that matches, and to no other', async () => {
    const { bus, delivered } = start();
    bus.put(event);
    bus.put({ ...event, source: 'other' });
    await vi.advanceTimersByTimeAsync(0);
    expect(delivered).toEqual(['settle', 'tell']);
  });

  it('calls at a rate, and at once where time has passed that nobody watched', async () => {
    const { delivered } = start();
    await vi.advanceTimersByTimeAsync(2 * 3_600_000 + 1);
    expect(delivered).toEqual(['sweep', 'sweep']);
    const late = start({ isLate: true });
    await vi.advanceTimersByTimeAsync(0);
    expect(late.delivered).toEqual(['sweep']);
  });

  it('waits until functions may be called, tries again where there is no room, and stops when it is closed', async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    let room = 0;
    let tries = 0;
    const deliver = (): boolean => {
      tries += 1;
      return tries > room;
    };
    const { bus } = start({ ready: promise, deliver });
    room = 3;
    bus.put(event);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(tries).toBe(0);
    resolve(undefined);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(tries).toBe(5);
    room = 99;
    bus.put(event);
    await vi.advanceTimersByTimeAsync(0);
    await bus.close();
    const before = tries;
    await vi.advanceTimersByTimeAsync(3 * 3_600_000);
    expect(tries).toBe(before);
  });
});
