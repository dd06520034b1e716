import { describe, expect, it } from 'vitest';
import { type NewStage, type RunStage, similarProfile } from '../../../../src/core/forecast/similar-jobs.ts';

const grep: RunStage = { operator: 'grep', tasks: 10, bytesIn: 1_000, bytesOut: 500, workerMs: 20_000 };
const top: RunStage = { operator: 'top-counts', tasks: 2, bytesIn: 500, bytesOut: 10, workerMs: 1_000 };

const map = (more: Partial<NewStage> = {}): NewStage => ({
  ...{ name: 'map', operator: 'grep', tasks: 5, sourceBytes: 2_000, inputs: [] },
  ...more,
});
const reduce: NewStage = {
  name: 'top',
  operator: 'top-counts',
  tasks: 1,
  sourceBytes: 0,
  inputs: [{ stage: 0, isBarrier: true }],
};

const profileOf = (stages: readonly NewStage[], finished: readonly RunStage[]) => {
  const found = similarProfile(stages, finished);
  if ('unknown' in found) throw new Error(found.unknown.join());
  return found.profile.stages;
};
const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, each) => sum + each, 0) / values.length;

describe('similarProfile', () => {
  it('goes by bytes where they are known: 20 ms each there, 400 to a task here, and half of them passed on', () => {
    const [first, second] = profileOf([map(), reduce], [grep, top]);
    expect(first?.runs[0]?.times.later).toHaveLength(9);
    expect(meanOf(first?.runs[0]?.times.later ?? [])).toBeCloseTo(8_000, -1);
    // 1,000 bytes of the 2,000 come to the one task of the second stage, at 2 ms each.
    expect(meanOf(second?.runs[0]?.times.later ?? [])).toBeCloseTo(2_000, -1);
    expect(first?.tasks).toBe(5);
    expect(second?.inputs).toEqual([{ stage: 0, isBarrier: true }]);
  });

  it('goes by tasks where bytes are not known', () => {
    const [first] = profileOf([map({ sourceBytes: undefined })], [grep]);
    expect(meanOf(first?.runs[0]?.times.later ?? [])).toBeCloseTo(2_000, -1);
  });

  it('takes a task to need some time however little it reads', () => {
    const [first] = profileOf([map({ sourceBytes: 1 })], [grep]);
    expect(meanOf(first?.runs[0]?.times.later ?? [])).toBeCloseTo(200, -1);
  });

  it('passes over runs whose tasks read less than a tenth as much: what they took was mostly their begin', () => {
    const tiny: RunStage = { operator: 'grep', tasks: 1, bytesIn: 4, bytesOut: 4, workerMs: 100 };
    const empty: RunStage = { ...tiny, bytesIn: 0, bytesOut: 0 };
    const [first] = profileOf([map()], [tiny, empty, grep]);
    expect(first?.runs[0]?.times.later).toHaveLength(9);
    expect(meanOf(first?.runs[0]?.times.later ?? [])).toBeCloseTo(8_000, -1);
    // Of no other run nothing follows: by the byte it would be 10 s a task, as if a task began anew with each.
    expect(similarProfile([map()], [tiny, empty])).toEqual({ unknown: [], onLess: ['grep'] });
    // How much it passes on is not known: what reads that is not said to have run on less.
    const counted: RunStage = { ...tiny, operator: 'top-counts' };
    expect(similarProfile([map(), reduce], [tiny, counted])).toEqual({ unknown: [], onLess: ['grep'] });
    const [same] = profileOf([map({ tasks: 1, sourceBytes: 40 })], [tiny]);
    expect(meanOf(same?.runs[0]?.times.later ?? [])).toBeCloseTo(1_000, -1);
    const [none] = profileOf([map({ sourceBytes: 0 })], [empty]);
    expect(meanOf(none?.runs[0]?.times.later ?? [])).toBeCloseTo(100, -1);
  });

  it('names what nobody has run, and learns nothing from stages that did nothing or from user code', () => {
    expect(similarProfile([map(), reduce], [grep])).toEqual({ unknown: ['top-counts'], onLess: [] });
    expect(similarProfile([map()], [{ ...grep, workerMs: 0 }])).toEqual({ unknown: ['grep'], onLess: [] });
    expect(similarProfile([map({ operator: 'code' })], [{ ...grep, operator: 'code' }])).toEqual({
      unknown: ['code'],
      onLess: [],
    });
    expect(similarProfile([map()], [])).toEqual({ unknown: ['grep'], onLess: [] });
  });
});
