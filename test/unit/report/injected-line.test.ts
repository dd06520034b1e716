import { describe, expect, it } from 'vitest';
import { parseInjection } from '../../../src/local/inject/injection.ts';
import { renderInjected } from '../../../src/report/injected-line.ts';

const nothing = {
  ...{ slow: 0, killed: 0, memoryHogs: 0, interrupted: 0, throttled: 0, slowReads: 0, coldStarts: 0 },
  ...{ paused: 0, skewed: 0, lostObjects: 0, corruptObjects: 0, lostInvocations: 0, duplicateInvocations: 0 },
  places: {
    slow: [],
    killed: [],
    memoryHogs: [],
    interrupted: [],
    coldStarts: [],
    paused: [],
    ahead: [],
    behind: [],
  },
  attempts: { lostInvocations: [], duplicateInvocations: [] },
};

describe('the line of what went wrong on purpose', () => {
  it('tells what was asked for also where it struck nothing, or less', () => {
    expect(renderInjected(nothing, parseInjection('lose-object=1'))).toBe(
      '0 slow nodes, 0 killed workers, 0 throttled launches, 0 of 1 lost object',
    );
    const asked = parseInjection('slow=8x2,kill=3,corrupt-object=2,slow-read=0.1@4');
    expect(renderInjected({ ...nothing, slow: 1, killed: 3, corruptObjects: 2 }, asked)).toBe(
      '1 of 2 slow nodes, 3 killed workers, 0 throttled launches, 0 slow reads, 2 corrupt objects',
    );
  });

  it('tells of a zone that was to be lost, and was not', () => {
    const asked = parseInjection('lose-zone=use1-az2@600');
    expect(renderInjected(nothing, asked)).toBe(
      '0 slow nodes, 0 killed workers, 0 throttled launches, storage of use1-az2 not lost: nothing ran so long',
    );
    expect(renderInjected({ ...nothing, lostZone: 'use1-az2' }, asked)).toBe(
      '0 slow nodes, 0 killed workers, 0 throttled launches, storage of use1-az2 lost',
    );
  });

  it('tells what there was alone where nobody says what was asked for', () => {
    expect(renderInjected({ ...nothing, slow: 1, lostObjects: 2 })).toBe(
      '1 slow node, 0 killed workers, 0 throttled launches, 2 lost objects',
    );
  });
});
