import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeConnection } from '../../src/cli/connection.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { withWorkersOf } from '../support/assemblies.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { Workplace } from './command.ts';

/** Of a worker on Lambda, which keeps a tenth for handing on and a tenth to stop. */
const lambdaS = 30;
/** So long each answer of a file is held, counted from when it was asked for first: until its reader has to leave. */
const heldMs = 24_500;
/** So often: `c-held` is asked for by the first attempt too, ahead of its turn. */
const holdsOf = (resource: string): number => (resource.endsWith('c-held') ? 2 : 1);
const linesOf = (count: number, word: string): Buffer =>
  Buffer.from(Array.from({ length: count }, (_, line) => `${word} ${String((line * 7) % 977)}\n`).join(''));
const files = {
  a: linesOf(60_000, 'two'),
  'b-held': linesOf(120_000, 'one'),
  'c-held': linesOf(90_000, 'six'),
};

let system: EmbeddedSystem;
let assemblyDir: string;
/** When each hold of a file began. */
const holds = new Map<string, number[]>();

beforeAll(async () => {
  assemblyDir = await withWorkersOf(lambdaS);
  system = await EmbeddedSystem.start({
    slots: 2,
    assemblyDir,
    onRequest: ({ service, operation, resource }) => {
      if (service !== 's3' || operation !== 'GetObject' || !resource.endsWith('-held')) return undefined;
      const begun = holds.get(resource) ?? [];
      holds.set(resource, begun);
      const now = Date.now();
      if (now >= (begun.at(-1) ?? 0) + heldMs && begun.length < holdsOf(resource)) begun.push(now);
      return { delayMs: Math.max(0, (begun.at(-1) ?? 0) + heldMs - now) };
    },
  });
  await writeConnection(system.dir, system.stack);
}, 400_000);
afterAll(async () => {
  await system.stop();
  await rm(assemblyDir, { recursive: true, force: true });
});

const sortOf = (s3: string[], fallback: 'none' | 'fargate'): JobSpecInput => ({
  // Each by itself: what one has taken would send the other to Fargate from the first.
  name: `sort-${fallback}`,
  policy: 'none',
  stages: [
    { name: 'sample', operator: 'sample', inputs: [{ s3: s3.slice(0, 1) }] },
    {
      name: 'bounds',
      operator: 'bounds',
      options: { partitions: 3 },
      inputs: [{ stage: 'sample', pattern: 'many-to-one' }],
    },
    {
      name: 'partition',
      operator: 'range-partition',
      partitions: 3,
      inputs: [{ s3 }, { stage: 'bounds', pattern: 'broadcast' }],
      worker: { kind: 'lambda', ...(fallback === 'none' ? { fallback } : {}) },
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'partition', pattern: 'all-to-all' }] },
  ],
});

/** Runs the job to its end; answers the attempts of the task that is out of time. */
async function run(prefix: string, names: readonly (keyof typeof files)[], fallback: 'none' | 'fargate') {
  const inputs: string[] = [];
  for (const name of names) inputs.push(await system.put(`${prefix}/${name}`, files[name]));
  const jobId = await system.submit(sortOf(inputs, fallback));
  const job = await system.ended(jobId, 240_000);
  expect(job.error).toBeUndefined();
  const text = Buffer.concat(names.map((name) => files[name]));
  expect((await system.output(job)).equals(coreutils('sort', [], text))).toBe(true);
  expect(job.stages.find(({ name }) => name === 'partition')).toMatchObject({
    recordsOut: text.toString().split('\n').length - 1,
  });
  await expectNothingLeft(system);
  const { attempts } = await system.api.attempts(jobId);
  return { jobId, attempts: attempts.filter(({ attemptId }) => attemptId.startsWith('partition/')) };
}

it('a task whose time on Lambda runs out, and runs out again, is gone on with there where it may not leave it', async () => {
  const { jobId, attempts } = await run('stay', ['a', 'b-held', 'c-held'], 'none');
  expect(attempts.map(({ failure, state }) => failure?.cause ?? state)).toEqual([
    'timeout',
    'timeout',
    'done',
  ]);
  const [first, second, last] = attempts;
  const firstDone = first?.saved?.bytesDone ?? 0;
  const secondDone = second?.saved?.bytesDone ?? 0;
  expect(firstDone).toBeGreaterThan(files.a.length);
  expect(secondDone).toBeGreaterThan(files.a.length + files['b-held'].length);
  expect(second?.progress?.takenUp).toMatchObject({ attempt: 0, bytes: firstDone });
  expect(last?.progress?.takenUp).toMatchObject({ attempt: 1, bytes: secondDone });
  expect(attempts.every(({ node }) => node?.includes('task') !== true)).toBe(true);
  const place = await Workplace.make();
  const explained = (await place.run('explain', jobId, 'partition/0', '--state-dir', system.dir)).out;
  expect(explained).toMatch(/it left its task [\d.]+ s before its environment's time was up/);
  expect(explained).toMatch(/It took up what attempt 1 had done when that had to end/);
}, 400_000);

it('else it is gone on with on Fargate', async () => {
  const { attempts } = await run('leave', ['a', 'b-held'], 'fargate');
  expect(attempts.map(({ failure, state }) => failure?.cause ?? state)).toEqual(['timeout', 'done']);
  expect(attempts[1]?.progress?.takenUp).toMatchObject({ attempt: 0, bytes: attempts[0]?.saved?.bytesDone });
  expect(attempts[1]?.node).toMatch(/task\//);
}, 400_000);
