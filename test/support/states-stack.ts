import {
  DescribeExecutionCommand,
  GetExecutionHistoryCommand,
  SFNClient,
  StartExecutionCommand,
} from '@aws-sdk/client-sfn';
import type { DescribeExecutionCommandOutput } from '@aws-sdk/client-sfn';
import { startStepFunctionsServer } from '../../src/local/sfn/server.ts';
import type { StepFunctionsOptions, StepFunctionsServer } from '../../src/local/sfn/server.ts';

export const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'secret' };
export const REGION = 'us-east-1';
export const ARN = 'arn:aws:states:us-east-1:000000000000:stateMachine:machine';
export const FUNCTION = 'arn:aws:lambda:us-east-1:000000000000:function:work';

const cleanups: (() => Promise<void> | void)[] = [];

/** To run after each test, last one first. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

export function cleanUpLater(cleanup: () => Promise<void> | void): void {
  cleanups.push(cleanup);
}

export type Invoke = StepFunctionsOptions['invokeLambda'];
export interface Stack {
  readonly client: SFNClient;
  readonly server: StepFunctionsServer;
}

export async function stack(
  definition: object,
  invokeLambda: Invoke,
  more: Partial<StepFunctionsOptions> = {},
): Promise<Stack> {
  const server = await startStepFunctionsServer({
    credentials: CREDENTIALS,
    region: REGION,
    stateMachines: [{ name: 'machine', arn: ARN, definition, type: 'STANDARD' }],
    invokeLambda,
    ...more,
  });
  const client = clientFor(server.endpoint);
  cleanups.push(() => server.close());
  return { client, server };
}

export function clientFor(endpoint: string, credentials = CREDENTIALS): SFNClient {
  const client = new SFNClient({ endpoint, region: REGION, credentials, maxAttempts: 1 });
  cleanups.push(() => {
    client.destroy();
  });
  return client;
}

export async function start(client: SFNClient, input: unknown = {}, name?: string): Promise<string> {
  const { executionArn } = await client.send(
    new StartExecutionCommand({ stateMachineArn: ARN, input: JSON.stringify(input), name }),
  );
  return executionArn ?? '';
}

export async function ended(
  client: SFNClient,
  executionArn: string,
): Promise<DescribeExecutionCommandOutput> {
  for (let polls = 0; polls < 2_000; polls++) {
    const execution = await client.send(new DescribeExecutionCommand({ executionArn }));
    if (execution.status !== 'RUNNING') return execution;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error('the execution did not end');
}

export async function run(definition: object, invoke: Invoke, input: unknown = {}) {
  const { client } = await stack(definition, invoke);
  const executionArn = await start(client, input);
  const execution = await ended(client, executionArn);
  const { events = [] } = await client.send(
    new GetExecutionHistoryCommand({ executionArn, maxResults: 1000 }),
  );
  return { execution, events, types: events.map(({ type }) => type) };
}

export const oneTask = (more: object = {}) => ({
  StartAt: 'Work',
  States: { Work: { Type: 'Task', Resource: FUNCTION, End: true, ...more } },
});

export function named(name: string, message = 'boom'): Error {
  const error = new Error(message);
  error.name = name;
  return error;
}

/** A function that answers only when told to. */
export function gate() {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const { promise: called, resolve: onCall } = Promise.withResolvers<unknown>();
  return {
    called,
    open: resolve,
    invoke: (_: string, payload: unknown) => {
      onCall(payload);
      return promise;
    },
  };
}
