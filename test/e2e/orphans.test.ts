import { LambdaClient, InvokeCommand } from '@aws-sdk/client-lambda';
import { SFNClient, StopExecutionCommand } from '@aws-sdk/client-sfn';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { OutputName } from '../../src/contracts/settings.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingHeld } from '../support/nothing-left.ts';
import { editedAssembly, resourceIn, scratchDirectory } from '../contract/local-stack-support.ts';

const setUpMs = 180_000;
const text = Buffer.from(Array.from({ length: 400 }, (_, line) => `line ${line}\n`).join(''));

/** Tasks that take longer than any of these tests waits. */
const endless = (name: string, input: string): JobSpecInput => ({
  name,
  stages: [
    {
      name: 'slow',
      operator: 'exec',
      options: { command: ['sh', '-c', 'sleep 300; cat'] },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / 2) }],
    },
  ],
});

const client = ({ stack }: EmbeddedSystem, service: string) => ({
  region: stack.region,
  credentials: stack.credentials,
  endpoint: stack.environment[`AWS_ENDPOINT_URL_${service}`] ?? '',
});

/** What somebody does in the console of Step Functions. */
async function abort(system: EmbeddedSystem, jobId: string): Promise<void> {
  const machine = system.stack.outputs[OutputName.stateMachine] ?? '';
  const executionArn = `${machine.replace(':stateMachine:', ':execution:')}:${jobId}`;
  const sfn = new SFNClient(client(system, 'SFN'));
  await sfn.send(new StopExecutionCommand({ executionArn, error: 'Console', cause: 'by hand' }));
  sfn.destroy();
}

const working = (system: EmbeddedSystem, jobId: string): Promise<boolean> =>
  system.until('a worker at work', async () => {
    const { attempts } = await system.api.attempts(jobId);
    return attempts.some(({ state }) => state === 'running') || undefined;
  });

describe('a job whose execution is ended from outside', () => {
  let system: EmbeddedSystem;
  let input: string;
  beforeAll(async () => {
    system = await EmbeddedSystem.start({ slots: 2, parameters: { HeartbeatMs: '500' } });
    input = await system.put('lines', text);
  }, setUpMs);
  afterAll(async () => {
    await system.stop();
  });

  it(
    'ends as failed, says why, gives its slots back and leaves nothing',
    async () => {
      const jobId = await system.submit(endless('aborted', input));
      await working(system, jobId);
      await abort(system, jobId);
      const job = await system.ended(jobId);
      expect(job).toMatchObject({
        state: 'failed',
        error: { name: 'ExecutionEnded', message: 'its execution was aborted: Console: by hand' },
      });
      await expectNothingHeld(system, 60_000);
    },
    setUpMs,
  );

  it(
    'ends as cancelled where it was asked to stop',
    async () => {
      const jobId = await system.submit(endless('stopped', input));
      await working(system, jobId);
      await Promise.all([system.api.cancel(jobId), abort(system, jobId)]);
      expect((await system.ended(jobId)).state).toBe('cancelled');
      await expectNothingHeld(system, 60_000);
    },
    setUpMs,
  );
});

/** A system some of whose functions cannot even begin, and the name of its sweep. */
async function crippled(
  ...functions: readonly string[]
): Promise<{ readonly system: EmbeddedSystem; readonly sweep: string }> {
  const scratch = await scratchDirectory();
  let sweep = '';
  await editedAssembly(scratch.path, 'OutriderCoordinator', (template) => {
    sweep = `OutriderCoordinator-${resourceIn(template, 'AWS::Lambda::Function', 'sweep')[0]}`;
    for (const name of functions) {
      const [, properties] = resourceIn(template, 'AWS::Lambda::Function', name);
      properties['Environment'] = { Variables: {} };
    }
  });
  const parameters = { HeartbeatMs: '500' };
  return { system: await EmbeddedSystem.start({ slots: 2, parameters, assemblyDir: scratch.path }), sweep };
}

/** Fails as soon as it is planned. */
const hopeless: JobSpecInput = {
  name: 'hopeless',
  stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://nowhere-at-all/x'] }] }],
};

describe('a job whose Fail step cannot run', () => {
  it(
    'ends all the same when its execution does, with all that it held',
    async () => {
      const { system } = await crippled('fail');
      const input = await system.put('lines', text);
      const failed = await system.ended(await system.submit(hopeless));
      expect([failed.state, failed.error?.name]).toEqual(['failed', 'ExecutionEnded']);

      const jobId = await system.submit(endless('denied', input));
      await working(system, jobId);
      await system.api.cancel(jobId);
      expect((await system.ended(jobId)).state).toBe('cancelled');
      await expectNothingHeld(system, 60_000);
      await system.stop();
    },
    setUpMs,
  );

  it(
    'ends when it is cancelled, and what it left is removed, where nobody told of its end',
    async () => {
      const { system } = await crippled('settle');
      const jobId = await system.submit(endless('untold', await system.put('lines', text)));
      await working(system, jobId);
      await abort(system, jobId);
      expect((await system.api.job(jobId)).state).toBe('running');
      expect((await system.api.cancel(jobId)).state).toBe('cancelled');
      await expectNothingHeld(system, 60_000);
      await system.stop();
    },
    setUpMs,
  );

  it(
    'ends when it is cancelled, or else at the next sweep, where nobody is told either',
    async () => {
      const { system, sweep } = await crippled('fail', 'settle');
      const input = await system.put('lines', text);
      const [read, swept] = [
        await system.submit(endless('read', input)),
        await system.submit(endless('swept', input)),
      ];
      for (const jobId of [read, swept]) {
        await system.until('a plan', async () => (await system.api.job(jobId)).startedAt);
        await abort(system, jobId);
      }
      expect((await system.api.cancel(read)).state).toBe('cancelled');
      expect((await system.api.job(swept)).state).toBe('running');

      expect(await sweepOn(system, sweep)).toMatchObject({ seen: 2, ended: 1, failed: 0, isComplete: true });
      expect(await system.api.job(swept)).toMatchObject({
        state: 'failed',
        error: { name: 'ExecutionEnded', message: 'its execution was aborted' },
      } satisfies Partial<JobRecord>);
      const left = (await system.leftovers()).filter((key) => key.includes(swept));
      expect(left).toEqual([]);
      await expect
        .poll(() => system.capacity().then(({ grants }) => Object.keys(grants)))
        .not.toContain(swept);
      await system.stop();
    },
    setUpMs,
  );
});

/** Runs the sweep now, as its timer would within the hour. */
async function sweepOn(system: EmbeddedSystem, name: string): Promise<unknown> {
  const lambda = new LambdaClient(client(system, 'LAMBDA'));
  const answer = await lambda.send(new InvokeCommand({ FunctionName: name, Payload: '{}' }));
  lambda.destroy();
  return JSON.parse(Buffer.from(answer.Payload ?? []).toString());
}
