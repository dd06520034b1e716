import * as z from 'zod';

/** What a failed function answers; what it threw, or what Lambda says of its end. */
export const functionErrorSchema = z.looseObject({
  errorType: z.string().nullish(),
  errorMessage: z.string().nullish(),
});

/** What Lambda sends to the on-failure destination of an asynchronous invocation. */
export const failedInvocationSchema = z.looseObject({
  requestContext: z.looseObject({
    requestId: z.string().min(1),
    /** `RetriesExhausted`, or `EventAgeExceeded` where the event grew too old in the queue. */
    condition: z.string(),
  }),
  requestPayload: z.unknown().optional(),
  /** Absent where the function never ran. */
  responsePayload: z.unknown().optional(),
});
export type FailedInvocation = z.output<typeof failedInvocationSchema>;

/** The reason for which a scheduler, or whoever ends a job, has ECS stop a task. */
export const ownStopReason = 'the attempt is not needed';

/** What EventBridge tells of an ECS task that has changed its state. */
export const taskChangeSchema = z.looseObject({
  source: z.literal('aws.ecs'),
  'detail-type': z.literal('ECS Task State Change'),
  detail: z.looseObject({
    taskArn: z.string().min(1),
    lastStatus: z.string(),
    stopCode: z.string().nullish(),
    stoppedReason: z.string().nullish(),
    containers: z
      .array(z.looseObject({ exitCode: z.number().nullish(), reason: z.string().nullish() }))
      .default([]),
    overrides: z
      .looseObject({
        containerOverrides: z
          .array(
            z.looseObject({
              environment: z.array(z.looseObject({ name: z.string(), value: z.string() })).default([]),
            }),
          )
          .default([]),
      })
      .nullish(),
  }),
});
export type TaskChange = z.output<typeof taskChangeSchema>['detail'];
