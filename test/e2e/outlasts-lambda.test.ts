import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeConnection } from '../../src/cli/connection.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { withWorkersOf } from '../support/assemblies.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { Workplace } from './command.ts';
import { expectSameReplay } from './explained-run.ts';

/** Of a worker on Lambda, of which a tenth is kept to stop. */
const lambdaS = 30;
const tasks = 3;
const taskBytes = 16 * 1024 * 1024;
const text = Buffer.from(
  Array.from({ length: (tasks * taskBytes) / 64 }, (_, line) => `${String(line).padStart(63)}\n`).join(''),
);

/** Passes its input on bit by bit: 45 seconds for each task, without much work. */
const program = `
  for await (const chunk of process.stdin) {
    process.stdout.write(chunk);
    await new Promise((resolve) => setTimeout(resolve, (45_000 * chunk.length) / ${String(taskBytes)}));
  }`;

const slow = (input: string): JobSpecInput => ({
  name: 'slow',
  stages: [
    {
      name: 'pass',
      operator: 'exec',
      options: { command: [process.execPath, '--input-type=module', '--eval', program] },
      inputs: [{ s3: [input], splitBytes: taskBytes }],
    },
  ],
});

let system: EmbeddedSystem;
let assemblyDir: string;

beforeAll(async () => {
  assemblyDir = await withWorkersOf(lambdaS);
  system = await EmbeddedSystem.start({ slots: tasks, assemblyDir });
  await writeConnection(system.dir, system.stack);
}, 400_000);
afterAll(async () => {
  await system.stop();
  await rm(assemblyDir, { recursive: true, force: true });
});

it('a task that would run out of its time on Lambda, and lose what it has done, goes to Fargate once that is seen', async () => {
  const jobId = await system.submit(slow(await system.put('slow/lines.txt', text)));
  const job = await system.ended(jobId, 240_000);
  expect(job.error).toBeUndefined();
  expect((await system.output(job)).equals(text)).toBe(true);
  const { attempts } = await system.api.attempts(jobId);
  const firsts = attempts.filter(({ attemptId }) => attemptId.endsWith('/0'));
  const others = attempts.filter(({ attemptId }) => !attemptId.endsWith('/0'));
  // None was let run until Lambda's time was up.
  expect(attempts.flatMap(({ failure }) => failure?.cause ?? [])).toEqual([]);
  expect(firsts.map(({ order }) => order)).toEqual(['cancel', 'cancel', 'cancel']);
  expect(firsts.map(({ progress }) => progress?.handsOn)).toEqual([false, false, false]);
  expect(others.filter(({ state }) => state === 'done').map(({ node }) => node?.includes('task/'))).toEqual([
    true,
    true,
    true,
  ]);
  await expectNothingLeft(system);
  const place = await Workplace.make();
  const where = ['--state-dir', system.dir];
  const told = (await place.run('explain', jobId, 'pass/0', ...where)).out;
  expect(told).toContain('pass/0/0 was told to stop, since it would not have been done when Lambda ends it');
  await expectSameReplay(place, jobId, ...where);
}, 400_000);
