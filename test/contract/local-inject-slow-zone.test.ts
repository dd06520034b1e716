import { describe, expect, it } from 'vitest';
import { expectStopped, idler, injector, stateOf, workOf } from './local-inject-support.ts';

describe('an injection of a zone whose tasks are slow', () => {
  it('slows all tasks there, no others, and says which', async () => {
    const harm = injector('slow-zone=us-east-1a@8');
    const [one, other, elsewhere, nowhere] = [idler(), idler(), idler(), idler()];
    harm.onWork({ ...workOf(one.pid), zone: 'us-east-1a' });
    harm.onWork({ ...workOf(other.pid), zone: 'us-east-1a' });
    harm.onWork({ ...workOf(elsewhere.pid), zone: 'us-east-1b' });
    harm.onWork(workOf(nowhere.pid));
    await expectStopped(one.pid);
    await expectStopped(other.pid);
    expect(harm.counts()).toMatchObject({
      slow: 2,
      slowTaskZone: 'us-east-1a',
      slowTaskZoneId: 'use1-az1',
      places: { slow: [`place-${one.pid}`, `place-${other.pid}`] },
    });
    expect([stateOf(elsewhere.pid), stateOf(nowhere.pid)]).toEqual(['S', 'S']);
  });

  it('leaves the first workers slow that are to be, in any zone', () => {
    const harm = injector('slow=8x1,slow-zone=us-east-1a@8');
    const [one, other, third] = [idler(), idler(), idler()];
    harm.onWork({ ...workOf(one.pid), zone: 'us-east-1a' });
    harm.onWork({ ...workOf(other.pid), zone: 'us-east-1b' });
    harm.onWork({ ...workOf(third.pid), zone: 'us-east-1b' });
    expect(harm.counts().places.slow).toEqual([`place-${one.pid}`, `place-${other.pid}`]);
  });

  it('is refused where no tasks run', () => {
    const harm = injector('slow-zone=us-east-1d@8');
    const places = { buckets: [], empty: () => Promise.resolve(), taskZones: ['us-east-1a', 'us-east-1b'] };
    expect(() => {
      harm.harmsZones(places);
    }).toThrow('slow-zone must name one of the zones of tasks us-east-1a, us-east-1b, not us-east-1d');
  });
});
