import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { mockClient } from 'aws-sdk-client-mock';
import { beforeEach, describe, expect, it } from 'vitest';
import { LambdaForecaster } from '../../../src/adapters/aws/lambda-forecaster.ts';
import { S3ForecastStore } from '../../../src/adapters/aws/s3-forecast-store.ts';
import { forecastOf } from '../../contract/ports/forecast-store-suite.ts';

const lambda = mockClient(LambdaClient);
const s3 = mockClient(S3Client);
const forecaster = new LambdaForecaster(new LambdaClient({}), 'the-forecast');
const store = new S3ForecastStore(new S3Client({}), 'data');

const fault = (name: string, httpStatusCode: number): Error =>
  Object.assign(new Error(name), { name, $metadata: { httpStatusCode } });

beforeEach(() => {
  lambda.reset();
  s3.reset();
});

describe('the function that computes forecasts', () => {
  it('is called asynchronously, with the name of the jobs alone', async () => {
    lambda.on(InvokeCommand).resolves({ StatusCode: 202 });
    await forecaster.ask('words');
    expect(lambda.commandCalls(InvokeCommand).map(({ args }) => args[0].input)).toEqual([
      {
        FunctionName: 'the-forecast',
        InvocationType: 'Event',
        Payload: new TextEncoder().encode('{"name":"words"}'),
      },
    ]);
  });

  it.each([
    [fault('AccessDeniedException', 403), 'AccessDenied', /lambda:InvokeFunction on function the-forecast/],
    [fault('TooManyRequestsException', 429), 'StoreUnavailable', /not asked for/],
    [fault('ResourceNotFoundException', 404), 'StoreUnavailable', /not asked for/],
  ])('cannot be asked where Lambda says %s', async (cause, name, message) => {
    lambda.on(InvokeCommand).rejects(cause);
    await expect(forecaster.ask('words')).rejects.toMatchObject({
      name,
      message: expect.stringMatching(message) as unknown,
    });
  });
});

describe('forecasts in S3', () => {
  it('are written on the condition of what was read, or of nothing there', async () => {
    s3.on(PutObjectCommand).resolves({});
    expect(await store.put('words', forecastOf(), '"tag"')).toBe('stored');
    expect(await store.put('words', forecastOf(), undefined)).toBe('stored');
    const where = { Bucket: 'data', Key: 'forecasts/words.json' };
    expect(s3.commandCalls(PutObjectCommand).map(({ args }) => args[0].input)).toMatchObject([
      { ...where, IfMatch: '"tag"' },
      { ...where, IfNoneMatch: '*' },
    ]);
  });

  it('wait for the outcome of a rival that writes at the same time', async () => {
    s3.on(PutObjectCommand)
      .rejectsOnce(fault('ConditionalRequestConflict', 409))
      .rejectsOnce(fault('ConditionalRequestConflict', 409))
      .resolves({});
    expect(await store.put('words', forecastOf(), '"tag"')).toBe('stored');
    expect(s3.commandCalls(PutObjectCommand)).toHaveLength(3);
  });

  it.each([
    [fault('AccessDenied', 403), 'AccessDenied'],
    [fault('SlowDown', 503), 'StoreUnavailable'],
    [fault('NoSuchBucket', 404), 'StoreUnavailable'],
  ])('cannot be read or written where S3 says %s', async (cause, name) => {
    s3.on(GetObjectCommand).rejects(cause);
    s3.on(PutObjectCommand).rejects(cause);
    await expect(store.get('words')).rejects.toMatchObject({ name });
    await expect(store.put('words', forecastOf(), undefined)).rejects.toMatchObject({ name });
  });
});
