import { writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { explanationSchema, type Explanation } from '../../src/contracts/explanation.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { SimulatedOutcome } from '../../src/experiments/recorded-job.ts';
import type { PolicyComparison } from '../../src/core/replay/compare-policy.ts';
import type { ReplayReport } from '../../src/core/replay/replay-journal.ts';
import { Workplace } from './command.ts';
import { type ExplainedRun, otherActions, runExplained } from './explained-run.ts';

const tasks = 8;
const taskBytes = 1024 * 1024;
const line = `${'x'.repeat(63)}\n`;

/** Passes its input on bit by bit, with pauses: about three seconds a task, whatever else the machine does. */
const program = `
  for await (const chunk of process.stdin) {
    for (let at = 0; at < chunk.length; at += 4096) {
      process.stdout.write(chunk.subarray(at, at + 4096));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }`;

const job: JobSpecInput = {
  name: 'unhurried',
  stages: [
    {
      name: 'slow',
      operator: 'exec',
      options: { command: [process.execPath, '--input-type=module', '--eval', program] },
      inputs: [{ s3: ['lines.txt'], splitBytes: taskBytes }],
      partitions: 2,
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'slow', pattern: 'all-to-all' }] },
  ],
};

/** What `simulate --replay --policy` tells. */
type Replayed = ReplayReport & {
  readonly other: PolicyComparison & { readonly simulated: readonly SimulatedOutcome[] };
};

/** Runs the job to its end, and has it explained. */
async function explained(...options: readonly string[]): Promise<ExplainedRun> {
  const place = await Workplace.make();
  await writeFile(place.path('lines.txt'), line.repeat((tasks * taskBytes) / line.length));
  const ran = await runExplained({ place, job, options: ['--slots', '8', ...options] });
  expect([ran.exitCode, ran.report.error]).toEqual([0, null]);
  return ran;
}

const sumOf = ({ path }: Explanation): number => path.reduce((sum, { ms }) => sum + ms, 0);

describe('outrider explain', () => {
  it('names the nodes that were made slow, and the worker that was killed, and no others; each tick comes out alike again', async () => {
    const { place, report, explanation, text } = await explained(
      '--policy',
      'outrider',
      '--inject',
      'slow=8x2,kill=1',
    );
    const again = await place.run('simulate', '--replay', report.jobId, '--policy', 'none', '--json');
    expect([again.exitCode, again.err]).toEqual([0, '']);
    const { ticks, reproduced, decisions, unseen, other } = JSON.parse(again.out) as Replayed;
    expect([reproduced, unseen]).toEqual([ticks, []]);
    // Each task was launched, and both stages opened.
    expect(decisions).toBeGreaterThanOrEqual(tasks + 2);

    expect(other.wouldNot.some(({ reason }) => reason === 'backup' || reason === 'restart')).toBe(true);
    expect(other.simulated.map(({ policy }) => policy)).toEqual(['outrider', 'none']);
    for (const { completionS, slotSeconds } of other.simulated)
      expect(Math.min(completionS, slotSeconds)).toBeGreaterThan(0);

    const places = report.injected?.places;
    if (places === undefined) throw new Error('nothing was injected');
    const { slow, killed } = places;
    expect([slow.length, killed.length]).toEqual([2, 1]);
    // One that was killed had perhaps no time to be slow.
    const named = explanation.slowNodes.map(({ node }) => slow.find((each) => node.endsWith(each)) ?? node);
    expect(named.filter((each) => !slow.includes(each))).toEqual([]);
    expect(slow.filter((each) => !named.includes(each) && !killed.includes(each))).toEqual([]);
    for (const { node } of explanation.slowNodes) expect(text).toContain(`${node}: up to `);

    expect(explanation.failures).toMatchObject([{ cause: 'exited' }]);
    const attemptId = explanation.failures[0]?.attemptId ?? '';
    expect(text).toContain(`${attemptId}: exited, `);
    const task = attemptId.slice(0, attemptId.lastIndexOf('/'));
    const one = await place.run('explain', report.jobId, task, '--json');
    const attempts = explanationSchema.parse(JSON.parse(one.out)).stages[0]?.told[0]?.attempts ?? [];
    const struck = attempts.find((each) => each.attemptId === attemptId);
    expect(struck?.end).toBe('lost');
    // It was perhaps killed before it took the attempt up.
    if (struck?.node !== undefined) expect(struck.node.endsWith(killed[0] ?? '?')).toBe(true);
    expect(attempts.filter(({ end }) => end === 'won')).toHaveLength(1);

    expect(explanation.log.state).toBe('whole');
    expect(sumOf(explanation)).toBe(explanation.wallMs);
    // A copy beside the slow attempt, or another in its place, by how many slots were free.
    const kinds = new Set(explanation.actions.map(({ kind }) => kind));
    expect(kinds.has('retry') && (kinds.has('backup') || kinds.has('restart'))).toBe(true);
  }, 300_000);

  it('names no fault of a quiet job, and refuses what the job has not', async () => {
    const { place, report, explanation, text } = await explained();
    expect(explanation).toMatchObject({ slowNodes: [], failures: [] });
    expect(otherActions(explanation)).toEqual([]);
    const kinds = explanation.stages.flatMap(({ told: all }) =>
      all.flatMap(({ causes }) => causes.map(({ kind }) => kind)),
    );
    expect(kinds.filter((kind) => !['before-launch', 'host-wait', 'ride'].includes(kind))).toEqual([]);
    expect(sumOf(explanation)).toBe(explanation.wallMs);
    const [uncopied, ...others] = text.split('\n').filter((each) => /slow node|failed|lost/.test(each));
    expect([uncopied, others]).toEqual([expect.stringContaining('the job copied no outputs, since S3'), []]);

    const refused = async (...args: readonly string[]) => place.run('explain', ...args);
    expect(await refused('nothing')).toMatchObject({
      exitCode: 2,
      err: 'outrider: "nothing" is no id of a job, such as wordcount-0123456789ab: "outrider list" names them\n',
    });
    expect(await refused(report.jobId, 'slw')).toMatchObject({
      exitCode: 2,
      err: `outrider: job ${report.jobId} has no stage "slw": its stages are slow, merge; did you mean "slow"?\n`,
    });
    expect(await refused(report.jobId, 'slow/8')).toMatchObject({
      exitCode: 2,
      err: `outrider: job ${report.jobId} has no task "slow/8": stage slow has tasks 0 to 7\n`,
    });
    expect(await refused(report.jobId, 'slow/x')).toMatchObject({
      exitCode: 2,
      err: 'outrider: "slow/x" must be a stage or stage/index, such as "tokenize" or "tokenize/3"\n',
    });
  }, 180_000);
});
