import { describe, expect, it } from 'vitest';

import { divideConcurrency } from '../../src/local/lambda/concurrency-limits.ts';

const WORKER = { name: 'worker', reservedConcurrency: 500 };
const SCHEDULER = { name: 'scheduler', reservedConcurrency: 10 };
const API = { name: 'api' };

describe('reservations', () => {
  it('are kept where they fit', () => {
    const limits = divideConcurrency([WORKER, SCHEDULER, API], 1000);
    expect([...limits.reserved]).toEqual([
      ['worker', 500],
      ['scheduler', 10],
    ]);
    expect(limits.unreserved).toBe(490);
  });

  it('shrink in proportion where they do not, and leave one for each and for the rest', () => {
    const limits = divideConcurrency([WORKER, SCHEDULER, API], 8);
    expect([...limits.reserved]).toEqual([
      ['worker', 6],
      ['scheduler', 1],
    ]);
    expect(limits.unreserved).toBe(1);
  });

  it('leave at least one even if there is room for one only', () => {
    const limits = divideConcurrency([WORKER, API], 1);
    expect(limits.reserved.get('worker')).toBe(1);
    expect(limits.unreserved).toBe(1);
  });

  it('leave all to all if there are none', () => {
    expect(divideConcurrency([API], 8)).toEqual({ reserved: new Map(), unreserved: 8 });
  });
});
