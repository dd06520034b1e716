import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { PolicyConfigInput } from '../../src/contracts/policy-config.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { type Ill, illKinds } from '../support/hard-process.ts';
import { complaintsOf, harms, type Loss, lossyJob, type LossyOutcome } from '../support/lossy-jobs.ts';
import { draws } from '../support/draws.ts';

/** Lines that all differ, of about ten bytes, in no order. */
const lines = Array.from({ length: 400 }, (_, line) => `${(line * 7919) % 10_007} ${line}`);
const input = `${lines.join('\n')}\n`;
const sorted = `${lines.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).join('\n')}\n`;

/** A sort whose storage is known to lose three outputs of ten. */
const sortWith = (mantri: PolicyConfigInput['mantri']): JobSpecInput => ({
  ...builtinJob('sort', { inputs: ['s3://input/a'], splitBytes: 400, partitions: 3 }),
  policy: 'outrider',
  policyConfig: { mantri: { lossPrior: { probability: 0.3, outputs: 20 }, ...mantri } },
});

const arbLosses: fc.Arbitrary<Loss[]> = fc.array(
  fc.record({
    before: fc.integer({ min: 2, max: 24 }),
    which: fc.nat({ max: 30 }),
    harm: fc.constantFrom(...harms),
  }),
  { minLength: 1, maxLength: 4 },
);

/** Schedulers that freeze, die and err: copies are made twice, late or never. */
const arbIlls: fc.Arbitrary<Record<string, Ill[]>> = fc.dictionary(
  fc.constantFrom('scheduler 1', 'scheduler 2'),
  fc
    .array(
      fc.record({
        kind: fc.constantFrom(...illKinds),
        call: fc.integer({ min: 20, max: 150 }),
        ms: fc.constantFrom(6_000, 60_000),
      }),
      { minLength: 1, maxLength: 2 },
    )
    .map((ills) => ills.toSorted((a, b) => a.call - b.call)),
  { maxKeys: 2 },
);

const copiesOf = ({ decisions }: LossyOutcome) =>
  decisions.flatMap((each) => (each.kind === 'copy-output' ? [each] : []));

/** What is wrong with what a job has copied: none of these may ever be. */
function complaintsOfCopies(outcome: LossyOutcome): readonly string[] {
  const copies = copiesOf(outcome);
  const processed = outcome.job.stages.reduce((sum, { bytesIn }) => sum + bytesIn, 0);
  const ofWorth = copies.filter(({ reason }) => reason === 'worth');
  const bytes = ofWorth.reduce((sum, copy) => sum + copy.bytes, 0);
  return [
    ...(bytes > processed / 10 ? [`${bytes} bytes copied of ${processed}`] : []),
    ...ofWorth.flatMap(({ attemptId, facts: { lossCostMs = 0, copyMs = 0, tokens = 0 }, bytes: own }) =>
      lossCostMs > copyMs && own <= tokens ? [] : [`${attemptId} was not worth it`],
    ),
    ...(new Set(copies.map(({ attemptId }) => attemptId)).size === copies.length ? [] : ['copied twice']),
  ];
}

describe('a job that copies what is dear to lose', () => {
  it('ends exact, within its tokens, whatever is lost, and makes nothing again twice', async () => {
    await fc.assert(
      fc.asyncProperty(arbLosses, arbIlls, async (losses, ills) => {
        const outcome = await lossyJob({ spec: sortWith({}), input, losses, ills });
        expect([...complaintsOf(outcome), ...complaintsOfCopies(outcome)]).toEqual([]);
        expect(outcome.output).toBe(sorted);
      }),
      {
        numRuns: draws(20),
        examples: [
          // Copied after it was harmed: its copies are harmed as well, and so are theirs.
          [
            [
              { before: 4, which: 13, harm: 'flipped' },
              { before: 4, which: 14, harm: 'flipped' },
            ],
            {},
          ],
        ],
      },
    );
  }, 600_000);

  it('makes less again than one that copies nothing', async () => {
    const remade = { on: 0, off: 0 };
    // The first merge begins thirteenth: partitions are needed then.
    for (let which = 0; which < 6; which++)
      for (const side of ['on', 'off'] as const) {
        const isOn = side === 'on';
        const spec = sortWith({ replicates: isOn, precomputes: isOn });
        const losses = [2, 5].map((step): Loss => ({ before: 13, which: step * which, harm: 'removed' }));
        const outcome = await lossyJob({ spec, input, losses });
        expect(outcome.output).toBe(sorted);
        remade[side] += outcome.job.attempts.recomputed;
        if (isOn) expect(copiesOf(outcome).length).toBeGreaterThan(0);
        else expect(copiesOf(outcome)).toEqual([]);
      }
    expect(remade.on).toBeLessThan(remade.off);
  }, 600_000);

  it('copies nothing on standard storage, and says once why', async () => {
    const spec: JobSpecInput = { ...sortWith({}), policyConfig: {} };
    const outcome = await lossyJob({ spec, input, losses: [] });
    expect(copiesOf(outcome)).toEqual([]);
    const told = outcome.events.filter((event) => event.includes(' nothing-copied '));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('99.999999999 % durability');
    expect(told[0]).toContain('"storage":"standard"');
  }, 60_000);
});
