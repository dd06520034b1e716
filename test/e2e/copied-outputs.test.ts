import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeConnection } from '../../src/cli/connection.ts';
import { type AttemptId, attemptParts, type JobId } from '../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { attemptDataKey } from '../../src/contracts/keys.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng, type Rng } from '../../src/lib/rng.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { findStage, whereOutputsAreLost } from '../support/lossy-search.ts';
import { Workplace } from './command.ts';

/** Jobs with copies, and as many without. */
const runs = Number(process.env['OUTRIDER_COPY_RUNS'] ?? '2');
const parameters = { [ParameterName.heartbeatMs]: '300', [ParameterName.tickMs]: '100' };
const tasks = 8;

const lines = createRng('copied outputs');
const text = Buffer.from(
  Array.from({ length: 60_000 }, (_, line) => `${lines.next().toString(36)} ${line}\n`).join(''),
);
const expected = coreutils('sort', [], coreutils('grep', ['77$'], text));

/** A search whose first task takes so long that all others have ended before anybody reads them. */
const searchOf = (input: string, { copies }: { readonly copies: boolean }): JobSpecInput => ({
  name: 'search',
  ...whereOutputsAreLost(copies),
  stages: [
    findStage(input, { splitBytes: Math.ceil(text.length / tasks), firstS: 5, partitions: 2 }),
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'find', pattern: 'all-to-all' }] },
  ],
});

let system: EmbeddedSystem;
let input: string;

beforeAll(async () => {
  system = await EmbeddedSystem.start({ slots: 4, parameters });
  await writeConnection(system.dir, system.stack);
  input = await system.put('lines', text);
}, 400_000);

afterAll(() => system.stop());

/** Runs a search, of whose finished tasks three lose their output before anybody reads it. */
async function runLossy({ copies }: { readonly copies: boolean }, draws: Rng) {
  const jobId = await system.submit(searchOf(input, { copies }));
  const there = await system.until('outputs and their copies', async () => {
    const { results, replicas } = await system.outcomes(jobId);
    const found = results.filter(({ taskId }) => !copies || replicas.some((each) => each.taskId === taskId));
    return found.length >= 6 ? found.map(({ attemptId }) => attemptId) : undefined;
  });
  const lost = new Set<AttemptId>();
  while (lost.size < 3) {
    const id = there[Math.floor(draws.next() * there.length)];
    if (id !== undefined) lost.add(id);
  }
  const keys = [...lost].map((id) => attemptDataKey(jobId as JobId, id));
  await system.objects.remove(system.bucket, keys);
  return { jobId, lost, job: await system.ended(jobId) };
}

describe('a job whose storage is known to lose objects', () => {
  it('makes less again with copies than without, and its output is exact', async () => {
    const remade = { on: 0, off: 0 };
    for (let run = 0; run < runs; run++) {
      for (const side of ['on', 'off'] as const) {
        const draws = createRng(`copied ${run}`);
        const { jobId, lost, job } = await runLossy({ copies: side === 'on' }, draws);
        expect(job.error, `${side} ${run}`).toBeUndefined();
        expect(coreutils('sort', [], await system.output(job)).equals(expected), `${side} ${run}`).toBe(true);
        const decisions = await system.decisions(jobId);
        const copied = decisions.filter((each) => each.kind === 'copy-output' && each.reason === 'worth');
        const bytes = copied.reduce((sum, each) => sum + (each.kind === 'copy-output' ? each.bytes : 0), 0);
        const read = job.stages.reduce((sum, { bytesIn }) => sum + bytesIn, 0);
        expect(bytes).toBeLessThanOrEqual(read / 10);
        const losses = decisions.filter((each) => each.kind === 'lose-output');
        expect(losses.map(({ attemptId }) => attemptId).toSorted()).toEqual([...lost].toSorted());
        expect(losses.every(({ use }) => (use !== undefined) === (side === 'on'))).toBe(true);
        remade[side] += job.attempts.recomputed;
        await expectNothingLeft(system);
      }
    }
    expect(remade).toEqual({ on: 0, off: 3 * runs });
  }, 1_800_000);

  it('tells what was copied, and why', async () => {
    const jobId = await system.submit(searchOf(input, { copies: true }));
    const job = await system.ended(jobId);
    const copied = (await system.decisions(jobId)).find((each) => each.kind === 'copy-output');
    if (copied?.kind !== 'copy-output') throw new Error('nothing was copied');
    expect(attemptParts(copied.attemptId).stage).toBe('find');
    const place = await Workplace.make();
    const { out } = await place.run('logs', jobId, '--state-dir', system.dir);
    expect(out).toMatch(
      new RegExp(
        `${copied.attemptId} copied {2}reason worth, lossProbability \\S+, redoMs \\d+, lossCostMs \\S+, copyMs \\d+, bytes ${copied.bytes}, tokens \\d+`,
      ),
    );
    const report = await place.run('report', jobId, '--state-dir', system.dir);
    expect(report.out).toMatch(/copies {4}\d+ outputs? copied lest they be lost: .* that may be/);
    expect(job.state).toBe('succeeded');
  }, 120_000);

  it('copies nothing on standard storage, and says why', async () => {
    const jobId = await system.submit({ ...searchOf(input, { copies: true }), policyConfig: {} });
    await system.ended(jobId);
    expect((await system.decisions(jobId)).filter((each) => each.kind === 'copy-output')).toEqual([]);
    const place = await Workplace.make();
    const { out } = await place.run('logs', jobId, '--state-dir', system.dir);
    expect(out.match(/nothing copied {2}storage standard, why .*99\.999999999 %/g)).toHaveLength(1);
  }, 120_000);
});
