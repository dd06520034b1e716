import * as z from 'zod';
import type { LocalRule, RuleTrigger } from '../events/event-bus.ts';
import { patternProblem } from '../events/pattern.ts';
import { provisionError } from './provision-error.ts';
import { propertiesOf } from './properties.ts';
import type { ResolvedResource, ResolvedStacks } from './resolved-stacks.ts';

const ruleProperties = z.strictObject({
  Name: z.string().optional(),
  Description: z.string().optional(),
  EventBusName: z.literal('default').optional(),
  State: z.enum(['ENABLED', 'DISABLED']).default('ENABLED'),
  EventPattern: z.record(z.string(), z.unknown()).optional(),
  ScheduleExpression: z.string().optional(),
  Targets: z
    .array(
      z.strictObject({
        Id: z.string(),
        Arn: z.string(),
        // AWS's patience with a target that cannot be called; here there is one machine, and it is up.
        RetryPolicy: z.unknown().optional(),
        DeadLetterConfig: z.unknown().optional(),
      }),
    )
    .min(1),
});

const permissionProperties = z.looseObject({
  Action: z.string(),
  FunctionName: z.string(),
  Principal: z.string(),
  SourceArn: z.string().optional(),
});

const unitMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

/**
 * The rules of EventBridge that are in force.
 *
 * @throws ProvisionError for a pattern or a schedule that is not served here, a target that is no function of the
 * stacks, and one that the rule may not invoke.
 */
export function readRules({ resources }: ResolvedStacks): readonly LocalRule[] {
  const of = (type: string): readonly ResolvedResource[] => resources.filter((found) => found.type === type);
  const functions = new Map(
    of('AWS::Lambda::Function').map(({ identity }) => [identity.attributes['Arn'] ?? '', identity.ref]),
  );
  const permissions = of('AWS::Lambda::Permission').map((found) => propertiesOf(found, permissionProperties));
  return of('AWS::Events::Rule').flatMap((resource): readonly LocalRule[] => {
    const found = propertiesOf(resource, ruleProperties);
    const trigger = triggerOf(resource, found);
    const arn = resource.identity.attributes['Arn'] ?? '';
    const targets = found.Targets.map((target, index) => {
      const name = functions.get(target.Arn);
      if (name === undefined)
        throw provisionError(
          `${resource.where} Properties.Targets.${index}.Arn`,
          `no function is ${target.Arn}`,
        );
      const isAllowed = permissions.some(
        ({ Action, FunctionName, Principal, SourceArn }) =>
          Action === 'lambda:InvokeFunction' &&
          [target.Arn, name].includes(FunctionName) &&
          Principal === 'events.amazonaws.com' &&
          (SourceArn === undefined || SourceArn === arn),
      );
      if (!isAllowed)
        throw provisionError(resource.where, `no AWS::Lambda::Permission lets the rule invoke ${name}`);
      return name;
    });
    return found.State === 'DISABLED' ? [] : [{ name: resource.identity.ref, arn, trigger, targets }];
  });
}

function triggerOf(
  { where }: ResolvedResource,
  { EventPattern, ScheduleExpression }: z.output<typeof ruleProperties>,
): RuleTrigger {
  if (EventPattern !== undefined && ScheduleExpression === undefined) {
    const wrong = patternProblem(EventPattern);
    if (wrong === undefined) return { kind: 'pattern', pattern: EventPattern };
    throw provisionError(`${where} Properties.EventPattern.${wrong.path}`, wrong.problem);
  }
  if (ScheduleExpression === undefined || EventPattern !== undefined)
    throw provisionError(where, 'must have either an EventPattern or a ScheduleExpression');
  const match = /^rate\((\d{1,6}) (minute|hour|day)s?\)$/.exec(ScheduleExpression);
  const everyMs = Number(match?.[1]) * unitMs[(match?.[2] ?? 'day') as keyof typeof unitMs];
  if (match !== null && everyMs > 0) return { kind: 'rate', everyMs };
  throw provisionError(
    `${where} Properties.ScheduleExpression`,
    `only rate(…) is served by the embedded EventBridge, not ${ScheduleExpression}`,
  );
}
