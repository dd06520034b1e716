import type { FaultHook, FaultSubject } from '../http/fault-hook.ts';
import { parseFunctionName } from '../lambda/function-name.ts';
import type { HarmHook } from '../s3/harm-object.ts';
import type { DeliveryHook } from './delivery.ts';
import type { Injector } from './injector.ts';
import type { ClockHook, StartHook } from './start.ts';
import type { WorkHook } from './work.ts';

/** What the services of a stack ask before they serve, start or deliver, and tell of. */
export interface Hooks {
  readonly onRequest?: FaultHook;
  readonly onAccepted?: DeliveryHook;
  readonly onWork?: WorkHook;
  readonly onStart?: StartHook;
  readonly onClock?: ClockHook;
  readonly onWritten?: HarmHook;
}

/** The names that the templates give functions that run attempts. */
const workerFunction = /^OutriderCompute-Worker(?:x?large|medium|small)/;

/** Tasks are workers' alone. */
const isWorker = ({ name, place }: { readonly name: string; readonly place: string }): boolean =>
  place.startsWith('arn:') || workerFunction.test(name);

/** A function that runs no attempts, such as the one that computes forecasts, is no worker and is let alone. */
const isOfOthers = ({ service, operation, resource }: FaultSubject): boolean =>
  service === 'lambda' &&
  operation === 'Invoke' &&
  !workerFunction.test(parseFunctionName(resource)?.name ?? '');

/** The hooks of whoever started the stack and of its injector, which harms workers alone. */
export function hooksOf(onRequest: FaultHook | undefined, injector: Injector | undefined): Hooks {
  if (injector === undefined) return onRequest === undefined ? {} : { onRequest };
  return {
    onRequest: (subject) =>
      onRequest?.(subject) ?? (isOfOthers(subject) ? undefined : injector.onRequest(subject)),
    onAccepted: injector.onAccepted,
    onWork: (work) => {
      if (isWorker(work)) injector.onWork(work);
    },
    onStart: (start) => (workerFunction.test(start.name) ? injector.onStart(start) : 0),
    onClock: (start) => (isWorker(start) ? injector.onClock(start) : 0),
    onWritten: injector.onWritten,
  };
}
