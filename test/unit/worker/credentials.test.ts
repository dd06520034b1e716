import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

const plain = { PATH: '/bin' };
const credentials = { AWS_ACCESS_KEY_ID: 'AKID' };

/** Runs a stage that keeps what it sees. */
async function seen(asks: boolean | undefined, environment: Parameters<WorkerOfTest['deps']>[1]) {
  const worker = new WorkerOfTest();
  let found: unknown;
  const outcome = await worker.run(
    {
      run: (context) => {
        found = context.environment;
        return Promise.resolve();
      },
      ...(asks === undefined ? {} : { credentials: asks }),
    },
    0,
    environment,
  );
  const failure = (await worker.attempt(attemptIdOf('work', 0, 0)))?.failure;
  return { outcome, found, failure };
}

describe('the environment of a task', () => {
  it.each([
    [undefined, plain],
    [false, plain],
    [true, { ...plain, ...credentials }],
  ])('holds credentials only where its stage asks for them: %j', async (asks, expected) => {
    const { outcome, found } = await seen(asks, {
      environment: { plain, credentials: () => Promise.resolve(credentials) },
    });
    expect({ outcome, found }).toEqual({ outcome: 'done', found: expected });
  });

  it('is none where the stage asks for credentials that the deployment does not give', async () => {
    const { outcome, found, failure } = await seen(true, { environment: { plain } });
    expect({ outcome, found }).toEqual({ outcome: 'failed', found: undefined });
    expect(failure).toEqual({
      cause: 'bad-input',
      message: 'stage work asks for credentials, which this deployment gives to no stage',
    });
  });
});
