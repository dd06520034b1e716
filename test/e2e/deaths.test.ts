import { rm, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeConnection } from '../../src/cli/connection.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { withWorkersOf } from '../support/assemblies.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { Workplace } from './command.ts';

/** The time of a worker function: long enough to start, and short enough to wait for its end. */
const timeoutS = 15;
/** Synthesis takes its time on a busy machine. */
const startMs = 400_000;
const lines = Array.from({ length: 40 }, (_, line) => `line ${line}\n`).join('');

let system: EmbeddedSystem;
let input: string;
let assemblyDir: string;

beforeAll(async () => {
  assemblyDir = await withWorkersOf(timeoutS);
  // A worker that dies without a word is given up after five heartbeats, ten minutes: no test here waits so long.
  system = await EmbeddedSystem.start({
    assemblyDir,
    slots: 2,
    parameters: { [ParameterName.heartbeatMs]: '120000' },
  });
  await writeConnection(system.dir, system.stack);
  input = await system.put('lines', Buffer.from(lines));
}, startMs);

afterAll(async () => {
  await system.stop();
  await rm(assemblyDir, { recursive: true, force: true });
});

const sh = (script: string): readonly string[] => ['sh', '-c', script];
/** A program that passes its input on, and holds so much memory for a while before. */
const holding = (megabytes: number): readonly string[] => [
  process.execPath,
  '--eval',
  `const held = [];
   for (let mb = 0; mb < ${megabytes}; mb += 50) held.push(Buffer.alloc(50 * 1024 * 1024, 1));
   setTimeout(() => process.stdin.pipe(process.stdout), 1500);`,
];

type Worker = NonNullable<JobSpecInput['stages'][number]['worker']>;

/** What a job of one task on such a worker comes to, submitted and waited for by the command. */
async function submit(name: string, command: readonly string[], worker: Worker, splitBytes?: number) {
  const place = await Workplace.make();
  const stages = [
    { name: 'only', operator: 'exec', options: { command }, worker, inputs: [{ s3: [input], splitBytes }] },
  ];
  await writeFile(place.path('job.json'), JSON.stringify({ name, stages }));
  const { exitCode, out } = await place.run(
    ...['submit', 'job.json', '--wait', '--json', '--state-dir', system.dir],
  );
  const { jobId, state, error } = JSON.parse(out) as {
    jobId: string;
    state: string;
    error: { message: string } | null;
  };
  const { attempts } = await system.api.attempts(jobId);
  const job = await system.api.job(jobId);
  const workers = (await system.decisions(jobId)).flatMap((each) =>
    each.kind === 'launch' ? [each.worker ?? { kind: 'its', size: 'own' }] : [],
  );
  return {
    ...{ exitCode, told: error?.message, state, job },
    causes: attempts.map(({ failure, state: how }) => failure?.cause ?? how),
    on: workers.map(({ kind, size }) => `${kind} ${size}`),
    output: (await system.output(job)).toString(),
  };
}

const explained = async (jobId: string, task: string): Promise<string> => {
  const place = await Workplace.make();
  return (await place.run('explain', jobId, task, '--state-dir', system.dir)).out;
};

describe('a worker that runs out of memory', () => {
  it('is ended at once, and its task goes to the next size on Lambda', async () => {
    const done = await submit('hungry', holding(1_200), { kind: 'lambda', size: 'small' });
    expect(done).toMatchObject({ exitCode: 0, state: 'succeeded', output: lines });
    expect(done.causes).toEqual(['out-of-memory', 'done']);
    expect(done.on).toEqual(['its own', 'lambda medium']);
    expect(done.job.attempts).toMatchObject({ launched: 2, lost: 1 });
  });

  it('is ended at once on Fargate too, and goes to the next size there', async () => {
    const done = await submit('hungry-task', holding(1_300), { kind: 'fargate', size: 'small' });
    expect(done).toMatchObject({ exitCode: 0, state: 'succeeded', output: lines });
    expect(done.causes).toEqual(['out-of-memory', 'done']);
    expect(done.on).toEqual(['its own', 'fargate medium']);
  });

  it('goes on where only its program was killed, and tries that on the next size', async () => {
    // What the kernel does that chooses the largest process of a full environment.
    const command = sh('if mkdir "$0" 2>/dev/null; then kill -KILL $$; fi; cat');
    const done = await submit('killed', [...command, `${system.dir}/first`], {
      kind: 'lambda',
      size: 'small',
    });
    expect(done).toMatchObject({ exitCode: 0, output: lines, on: ['its own', 'lambda medium'] });
    expect(done.causes).toEqual(['out-of-memory', 'done']);
  });
});

describe('a worker whose time is over', () => {
  const slow = sh(`sleep ${timeoutS + 1}; cat`);

  it('stops by itself, and its task goes to Fargate', async () => {
    const done = await submit('slow', slow, { kind: 'lambda' });
    expect(done).toMatchObject({ exitCode: 0, state: 'succeeded', output: lines });
    expect(done.causes).toEqual(['timeout', 'done']);
    expect(done.on).toEqual(['its own', 'fargate medium']);
  });

  it('is followed by tasks that go to Fargate at once, since they read as much', async () => {
    // Three tasks on two slots: the third is launched when one has run out of time.
    const done = await submit('slow-all', slow, { kind: 'lambda' }, Math.ceil(lines.length / 3));
    expect(done).toMatchObject({ exitCode: 0, state: 'succeeded' });
    expect(done.output.split('\n').toSorted()).toEqual(lines.split('\n').toSorted());
    const launches = (await system.decisions(done.job.jobId)).flatMap((each) =>
      each.kind === 'launch' && each.reason === 'first' ? [each] : [],
    );
    expect(launches.map(({ worker }) => worker?.kind)).toEqual([undefined, undefined, 'fargate']);
    expect(launches[2]?.facts).toMatchObject({ lambdaMs: timeoutS * 900 });
    const told = await explained(done.job.jobId, launches[2]?.attemptId.replace(/\/\d+$/, '') ?? '');
    expect(told).toMatch(/the first attempt \(one with .* to read ran out of time, at most 13\.5s on Lambda/);
  });

  it('fails its job at once where it may not go there, and says why', async () => {
    const done = await submit('too-slow', slow, { kind: 'lambda', fallback: 'none' });
    expect(done).toMatchObject({ exitCode: 1, state: 'failed', causes: ['timeout'], on: ['its own'] });
    expect(done.job.error?.message).toMatch(
      /ran out of Lambda's time.*smaller splits.*worker\.fallback is "none"/,
    );
    expect(done.told).toBe(done.job.error?.message);
  });
});

describe('a worker that exits', () => {
  it.each(['lambda', 'fargate'] as const)('says so, and its task is tried again: on %s', async (kind) => {
    // Its worker, which no program of a job should end, and some do.
    const command = [...sh('if mkdir "$0" 2>/dev/null; then kill -HUP $PPID; sleep 600; fi; cat')];
    const done = await submit('exits', [...command, `${system.dir}/exits-${kind}`], { kind });
    expect(done).toMatchObject({ exitCode: 0, state: 'succeeded', output: lines });
    expect(done.causes).toEqual(['exited', 'done']);
    expect(done.on).toEqual(['its own', 'its own']);
  });
});
