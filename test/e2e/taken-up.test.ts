import { createHash } from 'node:crypto';
import { ECSClient, StopTaskCommand } from '@aws-sdk/client-ecs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeConnection } from '../../src/cli/connection.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { Workplace } from './command.ts';

/** The second of two files of one task: each answer of it comes no sooner than so long after it was asked for first. */
const heldKey = 'input/b-held';
const heldMs = 16_000;
const first = Buffer.from(
  Array.from({ length: 60_000 }, (_, line) => `one two ${String(line % 977)}\n`).join(''),
);
const second = Buffer.from(
  Array.from({ length: 240_000 }, (_, line) => `two six ${String(line % 977)}\n`).join(''),
);

let system: EmbeddedSystem;
let askedAt: number | undefined;

beforeAll(async () => {
  system = await EmbeddedSystem.start({
    slots: 2,
    onRequest: ({ service, operation, resource }) => {
      if (service !== 's3' || operation !== 'GetObject' || !resource.endsWith(heldKey)) return undefined;
      askedAt ??= Date.now();
      return { delayMs: Math.max(0, askedAt + heldMs - Date.now()) };
    },
  });
  await writeConnection(system.dir, system.stack);
}, 400_000);
afterAll(() => system.stop());

/** What counting words comes to, by other means. */
function counted(texts: readonly Buffer[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const word of texts
    .map((text) => text.toString())
    .join('')
    .split(/\s+/))
    if (word !== '') counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** Has the task that reads both files end once it has read the first, and tells what became of the job. */
async function interrupted(stage: 'tokenize' | 'pick', jobId: string): Promise<JobRecord> {
  const node = await system.until('a report that the first file was read', async () => {
    const [attempt] = (await system.api.attempts(jobId)).attempts;
    return (attempt?.progress?.bytesRead ?? 0) >= first.length ? attempt?.node : undefined;
  });
  // What Spot does with its notice, SIGTERM, ECS does for whoever asks.
  const { region, credentials, environment } = system.stack;
  const ecs = new ECSClient({ region, credentials, endpoint: environment['AWS_ENDPOINT_URL_ECS'] ?? '' });
  await ecs.send(new StopTaskCommand({ cluster: node.split('/')[1], task: node }));
  const job = await system.ended(jobId);
  expect(job.error).toBeUndefined();
  const attempts = (await system.api.attempts(jobId)).attempts.filter(({ attemptId }) =>
    attemptId.startsWith(`${stage}/`),
  );
  expect(attempts.map(({ failure, state }) => failure?.cause ?? state)).toEqual(['interrupted', 'done']);
  const [lost, last] = attempts;
  const done = lost?.saved?.bytesDone ?? 0;
  const total = first.length + second.length;
  expect(done).toBeGreaterThanOrEqual(first.length);
  expect(done).toBeLessThan(total);
  expect(last?.progress).toMatchObject({
    bytesRead: total - done,
    bytesTotal: total - done,
    takenUp: { attempt: 0, bytes: done },
  });
  expect(job.stages[0]).toMatchObject({ bytesIn: total, recordsIn: 300_000 });
  await expectNothingLeft(system);
  const place = await Workplace.make();
  const explained = (await place.run('explain', jobId, `${stage}/0`, '--state-dir', system.dir)).out;
  expect(explained).toMatch(
    /It took up what attempt 0 had done when that had to end: [\d.]+ KiB of [\d.]+ MiB\./,
  );
  expect(explained).toMatch(/it hands on the \d+ % of its input that it has done/);
  const logged = (await place.run('logs', jobId, '--state-dir', system.dir)).out;
  expect(logged).toMatch(
    new RegExp(`${stage}/0/1.*it took up at \\d+ % what attempt 0 had done when it had to end`),
  );
  return job;
}

it('a task on Fargate that is told to end is gone on with where it was, and the next attempt reads the rest alone', async () => {
  const inputs = [await system.put('a', first), await system.put('b-held', second)];
  const job = await interrupted(
    'tokenize',
    await system.submit({
      name: 'words',
      stages: [
        {
          name: 'tokenize',
          operator: 'tokenize',
          inputs: [{ s3: inputs }],
          partitions: 3,
          worker: { kind: 'fargate' },
        },
        {
          name: 'count',
          operator: 'sum-counts',
          inputs: [{ stage: 'tokenize', pattern: 'all-to-all' }],
        },
      ],
    }),
  );
  const words = (await system.output(job)).toString().trimEnd().split('\n');
  const told = new Map(words.map((line) => [line.split('\t')[0], Number(line.split('\t')[1])]));
  expect(told).toEqual(counted([first, second]));
  expect(job.counters).toMatchObject({ words: 900_000 });
}, 300_000);

it('so is one of code that says that it can be gone on with, which knows what it has kept', async () => {
  askedAt = undefined;
  const code = Buffer.from(`export default { check() {}, resumes: true, async run(context) {
    let number = context.kept?.number ?? 0;
    for (const input of context.inputs)
      for await (const { bytes } of input.blocks())
        for (const line of bytes.toString().trimEnd().split('\\n')) {
          context.count('lines', 1);
          if (++number % 1000 === 0) await context.output.write(Buffer.from(number + ' ' + line + '\\n'));
        }
    context.keep({ number });
  } };`);
  const job = await interrupted(
    'pick',
    await system.submit({
      name: 'pick',
      stages: [
        {
          name: 'pick',
          code: {
            s3: await system.put('code.mjs', code),
            sha256: createHash('sha256').update(code).digest('hex'),
          },
          inputs: [{ s3: [await system.put('a', first), await system.put('b-held', second)] }],
          worker: { kind: 'fargate' },
        },
      ],
    }),
  );
  const thousandth = Buffer.concat([first, second])
    .toString()
    .split('\n')
    .flatMap((line, index) => (index % 1000 === 999 ? [`${String(index + 1)} ${line}\n`] : []));
  expect(thousandth).toHaveLength(300);
  expect((await system.output(job)).toString()).toBe(thousandth.join(''));
  expect(job.counters).toMatchObject({ lines: 300_000 });
}, 300_000);
