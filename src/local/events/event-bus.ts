import { randomUUID } from 'node:crypto';
import type { ExecutionRecord } from '../sfn/execution-log.ts';
import { type BusEvent, matchesPattern } from './pattern.ts';

/** When a rule calls its functions: at events of a pattern, or again and again. */
export type RuleTrigger =
  | { readonly kind: 'pattern'; readonly pattern: Readonly<Record<string, unknown>> }
  | { readonly kind: 'rate'; readonly everyMs: number };

/** A rule whose targets are functions, by name. */
export interface LocalRule {
  readonly name: string;
  readonly arn: string;
  readonly trigger: RuleTrigger;
  readonly targets: readonly string[];
}

export interface EventBusOptions {
  readonly region: string;
  readonly accountId: string;
  readonly rules: readonly LocalRule[];
  /** Queues an event for a function; false where there is no room for it now. */
  readonly deliver: (functionName: string, event: BusEvent) => boolean;
  /** Nothing is delivered before it resolves. */
  readonly ready: Promise<unknown>;
  /** Whether what runs at a rate runs at once, too: where time has passed for which nobody looked. */
  readonly isLate: boolean;
  /** Between two tries to deliver an event; a second by default. */
  readonly retryMs?: number;
}

/** The default bus of EventBridge. */
export interface EventBus {
  put(event: BusEvent): void;
  close(): Promise<void>;
}

/** Node's timers hold 31 bits of milliseconds; a longer rate has no place on one machine. */
const LONGEST_TIMER_MS = 2_147_483_647;
const TRIES = 30;

/** Delivers events to the functions of the rules that they match, and calls those of rules with a rate. */
export function startEventBus(options: EventBusOptions): EventBus {
  const { rules, region, accountId } = options;
  const timers = new Set<NodeJS.Timeout>();
  let isClosed = false;

  const tryToDeliver = (target: string, event: BusEvent, tries: number): void => {
    if (isClosed || options.deliver(target, event) || tries >= TRIES) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      tryToDeliver(target, event, tries + 1);
    }, options.retryMs ?? 1_000);
    timers.add(timer);
  };
  const call = ({ targets }: LocalRule, event: BusEvent): void => {
    void options.ready.then(() => {
      for (const target of targets) tryToDeliver(target, event, 1);
    });
  };
  const tick = (rule: LocalRule): void => {
    const about = { region, accountId, resources: [rule.arn] };
    call(rule, busEvent('aws.events', 'Scheduled Event', about, {}));
  };

  for (const rule of rules) {
    if (rule.trigger.kind !== 'rate') continue;
    if (options.isLate) tick(rule);
    const everyMs = Math.min(rule.trigger.everyMs, LONGEST_TIMER_MS);
    timers.add(
      setInterval(() => {
        tick(rule);
      }, everyMs).unref(),
    );
  }
  return {
    put: (event) => {
      for (const rule of rules)
        if (rule.trigger.kind === 'pattern' && matchesPattern(rule.trigger.pattern, event)) call(rule, event);
    },
    close: () => {
      isClosed = true;
      for (const timer of timers) clearTimeout(timer);
      return Promise.resolve();
    },
  };
}

function busEvent(
  source: string,
  type: string,
  about: { readonly region: string; readonly accountId: string; readonly resources: readonly string[] },
  detail: Readonly<Record<string, unknown>>,
): BusEvent {
  return {
    version: '0',
    id: randomUUID(),
    'detail-type': type,
    source,
    account: about.accountId,
    time: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
    region: about.region,
    resources: about.resources,
    detail,
  };
}

/** What ECS tells EventBridge when a task has changed its status; `detail` is the task as DescribeTasks shows it. */
export function taskEvent(
  detail: Readonly<Record<string, unknown>>,
  about: { readonly region: string; readonly accountId: string },
): BusEvent {
  const resources = [String(detail['taskArn'])];
  // As JSON has it: without what is undefined.
  const told = JSON.parse(JSON.stringify(detail)) as Readonly<Record<string, unknown>>;
  return busEvent('aws.ecs', 'ECS Task State Change', { ...about, resources }, told);
}

/** What Step Functions tells EventBridge when the status of an execution has changed. */
export function executionEvent(
  record: ExecutionRecord,
  about: { readonly region: string; readonly accountId: string },
): BusEvent {
  const { executionArn, stateMachineArn, name, status, startMs, stopMs, input, output, failure } = record;
  const included = { included: true };
  const detail = {
    executionArn,
    stateMachineArn,
    name,
    status,
    startDate: startMs,
    stopDate: stopMs ?? null,
    input,
    inputDetails: included,
    output: output ?? null,
    outputDetails: output === undefined ? null : included,
    error: failure.error ?? null,
    cause: failure.cause ?? null,
  };
  const place = { ...about, resources: [executionArn] };
  return busEvent('aws.states', 'Step Functions Execution Status Change', place, detail);
}
