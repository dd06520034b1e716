import aslValidator from 'asl-validator';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { assertSupportedDefinition } from '../../src/local/sfn/definition.ts';
import { synthesized } from './synthesized.ts';

const joined = z.object({ 'Fn::Join': z.tuple([z.literal(''), z.array(z.unknown())]) });
const retry = z.looseObject({ ErrorEquals: z.array(z.string()), MaxAttempts: z.number() });
const definitionSchema = z.looseObject({
  StartAt: z.string(),
  States: z.record(
    z.string(),
    z.looseObject({
      Type: z.string(),
      Next: z.string().optional(),
      Resource: z.string().optional(),
      HeartbeatSeconds: z.number().optional(),
      TimeoutSeconds: z.number().optional(),
      Parameters: z.record(z.string(), z.unknown()).optional(),
      Retry: z.array(retry).optional(),
      Catch: z.array(z.unknown()).optional(),
    }),
  ),
});

/** The definition with every reference to a function replaced by an ARN of the right form. */
function definition(): z.output<typeof definitionSchema> {
  const [machine] = synthesized().resources('AWS::StepFunctions::StateMachine');
  const parts = joined.parse(machine?.properties['DefinitionString'])['Fn::Join'][1];
  const text = parts.map((part) => (typeof part === 'string' ? part : arnOf(part)));
  return definitionSchema.parse(JSON.parse(text.join('')));
}

const arnOf = (reference: unknown): string =>
  z.object({ Ref: z.literal('AWS::Partition') }).safeParse(reference).success
    ? 'aws'
    : `arn:aws:lambda:us-east-1:000000000000:function:${functionOf(reference)}`;

const functionOf = (reference: unknown): string =>
  z
    .object({ 'Fn::GetAtt': z.tuple([z.string(), z.literal('Arn')]) })
    .parse(reference)
    ['Fn::GetAtt'][0].slice(0, -8);

const machine = definition();

describe('the state machine', () => {
  it('is valid by the published schema of the language', () => {
    const result = aslValidator(machine);
    expect(result.errorsText()).toBe('');
    expect(result.isValid).toBe(true);
  });

  it('lies in the subset that the embedded Step Functions runs as AWS does', () => {
    expect(() => {
      assertSupportedDefinition(machine);
    }).not.toThrow();
  });

  it('plans, waits for the answer of whoever schedules the job, and finishes', () => {
    expect(machine.StartAt).toBe('Plan');
    expect(machine.States).toMatchObject({
      Plan: { Next: 'Schedule', Resource: expect.stringMatching(/:plan$/) as unknown },
      Schedule: {
        Next: 'Finish',
        Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
        Parameters: {
          FunctionName: expect.stringMatching(/:schedule$/) as unknown,
          Payload: { 'jobId.$': '$.jobId', 'taskToken.$': '$$.Task.Token' },
        },
        HeartbeatSeconds: 30,
      },
      Finish: { End: true, Resource: expect.stringMatching(/:finish$/) as unknown },
    });
  });

  it.each(['Plan', 'Schedule', 'Finish'])(
    'records the error when %s fails for good, and fails with it',
    (name) => {
      expect(machine.States[name]?.Catch).toEqual([
        ...(name === 'Finish' ? [{ ErrorEquals: ['OutputLost'], ResultPath: null, Next: 'Schedule' }] : []),
        { ErrorEquals: ['States.ALL'], ResultPath: '$.error', Next: 'Fail' },
      ]);
      expect(machine.States['Fail']).toMatchObject({ Next: 'JobFailed', ResultPath: null });
      expect(machine.States['JobFailed']).toMatchObject({
        Type: 'Fail',
        ErrorPath: '$.error.Error',
        CausePath: '$.error.Cause',
      });
    },
  );

  it.each(['Plan', 'Schedule', 'Finish', 'Fail'])(
    '%s retries passing faults with backoff and full jitter',
    (name) => {
      const passing = machine.States[name]?.Retry?.find(({ ErrorEquals }) =>
        ErrorEquals.includes('StoreUnavailable'),
      );
      expect(passing).toEqual({
        ErrorEquals: [
          'StoreUnavailable',
          'LaunchThrottled',
          'Lambda.Unknown',
          'Runtime.ExitError',
          'Sandbox.Timedout',
          'States.Timeout',
        ],
        IntervalSeconds: 1,
        BackoffRate: 2,
        MaxDelaySeconds: 30,
        MaxAttempts: 12,
        JitterStrategy: 'FULL',
      });
    },
  );

  it.each(['Plan', 'Schedule', 'Finish', 'Fail'])(
    '%s is tried again for hours while Lambda has no room for it, by that and no other rule',
    (name) => {
      const busy = machine.States[name]?.Retry?.filter(({ ErrorEquals }) =>
        ErrorEquals.includes('Lambda.TooManyRequestsException'),
      );
      expect(busy).toEqual([
        {
          ErrorEquals: [
            'Lambda.TooManyRequestsException',
            'Lambda.ServiceException',
            'Lambda.AWSLambdaException',
            'Lambda.SdkClientException',
            'Lambda.ClientExecutionTimeoutException',
            'Lambda.ResourceConflictException',
          ],
          IntervalSeconds: 2,
          BackoffRate: 2,
          MaxDelaySeconds: 60,
          MaxAttempts: 1_500,
          JitterStrategy: 'FULL',
        },
      ]);
    },
  );

  it('tries each task again after every fault of Lambda that AWS says will pass, and while a function is updated', () => {
    const tasks = Object.entries(machine.States).filter(([, { Type }]) => Type === 'Task');
    expect(tasks.map(([name]) => name).sort()).toEqual(['Fail', 'Finish', 'Plan', 'Schedule']);
    for (const [, { Retry = [] }] of tasks) {
      // The first four: https://docs.aws.amazon.com/step-functions/latest/dg/bp-lambda-serviceexception.html
      expect(Retry.flatMap(({ ErrorEquals }) => ErrorEquals)).toEqual(
        expect.arrayContaining([
          'Lambda.ClientExecutionTimeoutException',
          'Lambda.ServiceException',
          'Lambda.AWSLambdaException',
          'Lambda.SdkClientException',
          'Lambda.ResourceConflictException',
        ]),
      );
    }
  });

  it('is scheduled anew after a hand-over or a silence, as often as the longest job may come to', () => {
    const [first] = machine.States['Schedule']?.Retry ?? [];
    expect(first).toMatchObject({
      ErrorEquals: ['HandOver', 'States.HeartbeatTimeout', 'States.Timeout'],
      IntervalSeconds: 1,
    });
    // A hand-over in 13 minutes, for nine days.
    expect(first?.MaxAttempts).toBeGreaterThanOrEqual((9 * 24 * 60) / 13);
    expect(machine.States['Schedule']?.TimeoutSeconds).toBeUndefined();
  });

  it('enters three states for a job that ends well, each of which costs', () => {
    const way: string[] = [];
    for (
      let state: string | undefined = machine.StartAt;
      state !== undefined;
      state = machine.States[state]?.Next
    )
      way.push(state);
    expect(way).toEqual(['Plan', 'Schedule', 'Finish']);
  });

  it('waits for a held lease as long as the longest invocation may hold it', () => {
    const held = machine.States['Schedule']?.Retry?.find(({ ErrorEquals }) =>
      ErrorEquals.includes('LeaseHeld'),
    );
    expect(held).toMatchObject({ IntervalSeconds: 3, BackoffRate: 1 });
    expect(3 * (held?.MaxAttempts ?? 0)).toBeGreaterThanOrEqual(900);
  });

  it('never retries what will not pass', () => {
    const retried = Object.values(machine.States).flatMap(({ Retry = [] }) =>
      Retry.flatMap((rule) => rule.ErrorEquals),
    );
    for (const error of [
      'AccessDenied',
      'BrokenInvariant',
      'InvalidInput',
      'JobFailed',
      'States.ALL',
      'States.TaskFailed',
      'UnreadableRecord',
    ]) {
      expect(retried).not.toContain(error);
    }
  });
});
