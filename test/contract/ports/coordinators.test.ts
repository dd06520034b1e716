import { afterAll } from 'vitest';
import { SFNClient } from '@aws-sdk/client-sfn';
import { SfnCoordinator } from '../../../src/adapters/aws/sfn-coordinator.ts';
import { MemoryCoordinator } from '../../../src/adapters/memory/memory-coordinator.ts';
import { jobInputSchema } from '../../../src/contracts/payloads.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { startStepFunctionsServer } from '../../../src/local/sfn/server.ts';
import { type CoordinatorHost, describeCoordinator } from './coordinator-suite.ts';
import { credentials, region } from './servers.ts';

const STATE_MACHINE = 'arn:aws:states:us-east-1:000000000000:stateMachine:jobs';
const FUNCTION = 'arn:aws:lambda:us-east-1:000000000000:function:plan';
const closings: (() => Promise<void>)[] = [];

afterAll(async () => {
  for (const close of closings) await close();
});

function inMemory(): Promise<CoordinatorHost> {
  const begun: JobId[] = [];
  const coordinator = new MemoryCoordinator((jobId) => begun.push(jobId));
  return Promise.resolve({
    coordinator,
    begun: () => begun,
    finish(jobId, end) {
      coordinator.settle(jobId, end);
      return Promise.resolve();
    },
  });
}

/** A state machine of one step, which ends when it is told to. */
async function overStepFunctions(): Promise<CoordinatorHost> {
  const begun: JobId[] = [];
  const ends = new Map<JobId, PromiseWithResolvers<object>>();
  const endOf = (jobId: JobId): PromiseWithResolvers<object> => {
    const end = ends.get(jobId) ?? Promise.withResolvers<object>();
    ends.set(jobId, end);
    return end;
  };
  const server = await startStepFunctionsServer({
    credentials,
    region,
    stateMachines: [
      {
        name: 'jobs',
        arn: STATE_MACHINE,
        type: 'STANDARD',
        definition: { StartAt: 'Plan', States: { Plan: { Type: 'Task', Resource: FUNCTION, End: true } } },
      },
    ],
    invokeLambda: (_name, payload) => {
      const { jobId } = jobInputSchema.parse(payload);
      begun.push(jobId);
      return endOf(jobId).promise;
    },
  });
  const client = new SFNClient({ endpoint: server.endpoint, region, credentials });
  closings.push(async () => {
    client.destroy();
    await server.close();
  });
  const coordinator = new SfnCoordinator(client, STATE_MACHINE);
  return {
    coordinator,
    begun: () => begun,
    async finish(jobId, end) {
      if (end === 'succeeded') endOf(jobId).resolve({});
      else endOf(jobId).reject(new Error('told to fail'));
      for (let polls = 0; polls < 5_000; polls++) if ((await coordinator.status(jobId)) !== 'running') return;
      throw new Error('the execution did not end');
    },
  };
}

describeCoordinator('memory', inMemory);
describeCoordinator('Step Functions', overStepFunctions);
