import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { synthesized } from './synthesized.ts';

const ownNetwork = { subnets: 'subnet-01234567', securityGroups: 'sg-01234567' };
const configurations: readonly Readonly<Record<string, unknown>>[] = [
  {},
  { name: 'dev' },
  { fargate: 'off' },
  { fargate: 'spot' },
  ownNetwork,
  { ...ownNetwork, subnetZones: 'us-east-1a=use1-az4' },
];

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

  it.each(configurations)(
    'that are for all stacks are in each of them, and those of one stack in that one (%j)',
    (context) => {
      const { stacks } = synthesized(context);
      for (const [stack, template] of stacks) {
        const names = Object.keys(template.findParameters('*')).filter((name) => name !== 'BootstrapVersion');
        const own = stack.endsWith('Coordinator')
          ? [
              'ClaimLeaseMs',
              'FargateClaimLeaseMs',
              'HeartbeatMs',
              'LeaseMs',
              'Residents',
              'TickMs',
              'TotalSlots',
            ]
          : [];
        const all = ['UserCredentials', 'ZonalZone1', 'ZonalZone2', 'ZonalZone3'];
        expect([stack, names.sort()]).toEqual([stack, [...own, ...all].sort()]);
      }
    },
  );

  it('are given in the README as the CDK takes them', () => {
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
    const given = [...readme.matchAll(/--parameters (?:(\w+):)?(\w+)=/g)].map(
      ([, stack, name]) => `${stack ?? 'all'} ${name ?? ''}`,
    );
    expect([...new Set(given)].sort()).toEqual([
      ...['OutriderCoordinator ClaimLeaseMs', 'OutriderCoordinator TotalSlots'],
      ...['all UserCredentials', 'all ZonalZone1'],
    ]);
  });
});
