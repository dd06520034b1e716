import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { Workplace } from './command.ts';
import { type ExplainedRun, runExplained } from './explained-run.ts';

/** Lines of 64 bytes, so many of which nothing packs; the same each time. */
function linesOf(count: number, random: number, seed: string): string {
  const lines = Array.from({ length: count }, (_, line) => {
    const digest = createHash('sha512')
      .update(`${seed} ${String(line)}`)
      .digest('base64');
    return `${digest.slice(0, random).padEnd(63, 'x')}\n`;
  });
  return lines.join('');
}

/** Passes text on, 4 KiB in so many milliseconds: sleeping, so that a busy machine makes no task slow. */
const passing = (ms: number, splitBytes: number): JobSpecInput => {
  const program = `
    for await (const chunk of process.stdin)
      for (let at = 0; at < chunk.length; at += 4096) {
        process.stdout.write(chunk.subarray(at, at + 4096));
        await new Promise((resolve) => setTimeout(resolve, ${String(ms)}));
      }`;
  return {
    name: 'packed',
    stages: [
      {
        name: 'pass',
        operator: 'exec',
        options: { command: [process.execPath, '--input-type=module', '--eval', program] },
        inputs: [{ s3: ['input-*.gz'], splitBytes }],
      },
    ],
  };
};

async function run(texts: readonly string[], job: JobSpecInput): Promise<ExplainedRun> {
  const place = await Workplace.make();
  for (const [index, text] of texts.entries())
    await writeFile(place.path(`input-${String(index)}.gz`), gzipSync(text));
  const ran = await runExplained({ place, job, options: ['--slots', '5'] });
  expect([ran.exitCode, ran.report.error]).toEqual([0, null]);
  expect((await place.parts('out')).toString()).toBe(texts.join(''));
  return ran;
}

const copies = { backups: 0, restarts: 0, clones: 0, lost: 0, declined: 0 };

describe('packed input that the plan cannot see into', () => {
  it('is copied nowhere, and blames no node, where each file is one member and most of its pieces are empty', async () => {
    const texts = Array.from({ length: 6 }, (_, file) => linesOf(9_000, 60, String(file)));
    const { report, explanation, text } = await run(texts, passing(40, 90_000));
    // Of seven pieces of each file the first has all of it.
    expect(report.stages[0]?.tasks).toBeGreaterThanOrEqual(5 * texts.length);
    expect(report.attempts).toMatchObject(copies);
    expect(explanation.slowNodes).toEqual([]);
    expect(text).not.toMatch(/slow node|computed for long/);
  }, 180_000);

  it('is copied nowhere where a file holds five times the records of others that are as large', async () => {
    const usual = Array.from({ length: 8 }, (_, file) => linesOf(5_000, 60, String(file)));
    const { report, explanation, text } = await run(
      [...usual, linesOf(27_000, 9, 'dense')],
      passing(30, 600_000),
    );
    expect(report.attempts).toMatchObject(copies);
    expect(explanation.slowNodes).toEqual([]);
    expect(text).toMatch(/had more to read than its siblings: 27,000 records against 5,000/);
  }, 180_000);
});
