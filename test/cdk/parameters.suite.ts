import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { synthesized } from './synthesized.ts';

const environments = z.object({ Environment: z.object({ Variables: z.record(z.string(), z.unknown()) }) });

/** What a variable of the coordinator's functions is, of those that have it. */
function variable(context: Readonly<Record<string, unknown>>, name: string): unknown[] {
  const values = synthesized(context)
    .resources('AWS::Lambda::Function')
    .filter(({ stack }) => stack === 'OutriderCoordinator')
    .flatMap(({ properties }) => environments.safeParse(properties).data?.Environment.Variables[name] ?? []);
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

describe('parameters', () => {
  // Once a stack is there the CDK's command keeps each parameter as it was, whatever the new default is.
  it('say nothing that the context says: a claim lease that is changed there reaches the scheduler of a stack that is there', () => {
    const [short, long] = [{ claimLeaseSeconds: 900 }, { claimLeaseSeconds: 3_600 }];
    const parameters = [short, long].map((context) =>
      [...synthesized(context).stacks.values()].map((template) => template.findParameters('*')),
    );
    expect(parameters[0]).toEqual(parameters[1]);
    expect(parameters[0]?.[2]?.['ClaimLeaseMs']).toMatchObject({ Type: 'Number', Default: 0, MinValue: 0 });
    const name = 'OUTRIDER_CLAIM_LEASE_MS';
    const chosen = (ms: string): unknown => ({
      'Fn::If': ['HasClaimLeaseMs', { Ref: 'ClaimLeaseMs' }, ms],
    });
    expect(variable(short, name)).toEqual([chosen('900000')]);
    expect(variable(long, name)).toEqual([chosen('3600000')]);
    expect(synthesized(long).stacks.get('OutriderCoordinator')?.toJSON()['Conditions']).toMatchObject({
      HasClaimLeaseMs: { 'Fn::Not': [{ 'Fn::Equals': [{ Ref: 'ClaimLeaseMs' }, '0'] }] },
    });
  });
});
