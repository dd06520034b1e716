import { describe, expect, it } from 'vitest';
import { outrider } from '../../../../../src/core/policy/outrider/outrider.ts';
import { times, told, viewOf } from '../../../../support/policy-views.ts';

const size = 1_000_000;
/** A record for each hundred bytes, and 100 s for each task. */
const done = times(20, { doneMs: 100_000, density: 0.01 });

describe('outrider, of a task whose bytes hold more records than others', () => {
  it('says that these explain what it takes, and copies nothing', () => {
    // A tenth read after 50 s: 500 s in all, five times the usual; and five records where others have one.
    const running = [{ ranMs: 50_000, bytesRead: 0.1 * size, density: 0.05 }];
    expect(outrider.propose(viewOf([...done, { running }]))).toMatchObject([
      {
        kind: 'decline',
        reason: 'input-explained',
        facts: { remMs: 450_000, recordFactor: 5, slownessForInput: 1 },
      },
    ]);
  });

  it('copies it where it is far slower than these explain', () => {
    // 2,500 s in all where 500 are explained.
    const running = [{ ranMs: 250_000, bytesRead: 0.1 * size, density: 0.05 }];
    expect(told(outrider.propose(viewOf([...done, { running }])))).toEqual(['backup 20 2250000']);
  });

  it('copies one that is as slow with as many records as others, or where nobody counts any', () => {
    const slow = { ranMs: 50_000, bytesRead: 0.1 * size };
    for (const density of [0.01, 0.014, 0.001])
      expect(told(outrider.propose(viewOf([...done, { running: [{ ...slow, density }] }])))).toEqual([
        'backup 20 450000',
      ]);
    const uncounted = times(20, { doneMs: 100_000 });
    expect(told(outrider.propose(viewOf([...uncounted, { running: [{ ...slow, density: 0.05 }] }])))).toEqual(
      ['backup 20 450000'],
    );
  });

  it('goes by tasks that run and have read a good part where none has ended, and by none that have just begun', () => {
    const slow = { running: [{ ranMs: 50_000, bytesRead: 0.1 * size, density: 0.05 }] };
    const halfway = times(6, { running: [{ ranMs: 60_000, bytesRead: 0.6 * size, density: 0.01 }] });
    expect(told(outrider.propose(viewOf([...halfway, slow])))).toEqual([]);
    // What they have fetched and not looked at hides their records.
    const begun = times(6, { running: [{ ranMs: 40_000, bytesRead: 0.4 * size, density: 0.001 }] });
    expect(told(outrider.propose(viewOf([...begun, slow])))).toEqual(['backup 6 450000']);
  });
});
