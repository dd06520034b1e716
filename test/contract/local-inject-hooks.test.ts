import { expect, it } from 'vitest';
import { hooksOf } from '../../src/local/inject/hooks.ts';
import { idler, injector, workOf } from './local-inject-support.ts';

const taskArn = 'arn:aws:ecs:us-east-1:000000000000:task/OutriderCompute-Cluster/0123456789abcdef';

it.each([
  ['OutriderCompute-WorkersmallD67ACB55', 'b', ['b']],
  ['OutriderCompute-WorkerxlargeD67ACB55', 'b', ['b']],
  ['outrider-worker', taskArn, [taskArn]],
  ['OutriderCoordinator-Forecast0123ABCD', 'b', []],
  ['OutriderCoordinator-WorkerEnded0123ABCD', 'b', []],
])('work of %s in %s is struck only where it is a worker', (name, place, struck) => {
  const harm = injector('slow=8x1');
  hooksOf(undefined, harm).onWork?.({ ...workOf(idler().pid), name, place });
  expect(harm.counts().places.slow).toEqual(struck);
});

const arn = 'arn:aws:lambda:us-east-1:000000000000:function:';

it.each([
  ['OutriderCompute-WorkersmallD67ACB55', true],
  [`${arn}OutriderCompute-WorkersmallD67ACB55`, true],
  ['OutriderCoordinator-Forecast0123ABCD', false],
  [`${arn}OutriderCoordinator-Forecast0123ABCD`, false],
])('some events for %s are refused: %s', (resource, are) => {
  const { onRequest } = hooksOf(undefined, injector('throttle=0.95'));
  const asked = { service: 'lambda', operation: 'Invoke', resource, invocationType: 'Event' } as const;
  const answers = Array.from({ length: 100 }, () => onRequest?.(asked));
  expect(answers.some((answer) => answer !== undefined)).toBe(are);
});
