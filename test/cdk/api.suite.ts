import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { synthesized, type FoundResource } from './synthesized.ts';

const system = synthesized();
const methods = system.resources('AWS::ApiGateway::Method');
const byId = new Map(system.resources('AWS::ApiGateway::Resource').map((found) => [found.logicalId, found]));

const reference = z.object({ Ref: z.string() });

/** Path of a resource, from the root on. */
function pathOf(logicalId: string): string {
  const found = byId.get(logicalId);
  const parent = reference.safeParse(found?.properties['ParentId']);
  return `${parent.success ? pathOf(parent.data.Ref) : ''}/${String(found?.properties['PathPart'])}`;
}

const routeOf = ({ properties }: FoundResource): string =>
  `${String(properties['HttpMethod'])} ${pathOf(reference.parse(properties['ResourceId']).Ref)}`;

describe('the REST API', () => {
  it('has the nine routes and no others', () => {
    expect(methods.map(routeOf).toSorted()).toEqual([
      'GET /jobs',
      'GET /jobs/{id}',
      'GET /jobs/{id}/allocations',
      'GET /jobs/{id}/attempts',
      'GET /jobs/{id}/journal',
      'POST /jobs',
      'POST /jobs/{id}/cancel',
      'POST /plans',
      'PUT /jobs/{id}/deadline',
    ]);
  });

  it('has an address of its region: those for all regions are refused in some partitions', () => {
    expect(system.resources('AWS::ApiGateway::RestApi').map(({ properties }) => properties)).toMatchObject([
      { EndpointConfiguration: { Types: ['REGIONAL'] } },
    ]);
  });

  it.each(methods.map((method) => [routeOf(method), method] as const))(
    'asks IAM who calls %s',
    (_, method) => {
      expect(method.properties['AuthorizationType']).toBe('AWS_IAM');
    },
  );

  it('validates body and parameters of every method', () => {
    const validators = system.resources('AWS::ApiGateway::RequestValidator');
    expect(validators.map(({ properties }) => properties)).toMatchObject([
      { ValidateRequestBody: true, ValidateRequestParameters: true },
    ]);
    for (const { properties } of methods) {
      expect(properties['RequestValidatorId']).toEqual({ Ref: validators[0]?.logicalId });
    }
  });

  it('has models for the three bodies', () => {
    const modelled = methods
      .filter(({ properties }) => properties['RequestModels'] !== undefined)
      .map(routeOf);
    expect(modelled.toSorted()).toEqual(['POST /jobs', 'POST /plans', 'PUT /jobs/{id}/deadline']);
    const required = system
      .resources('AWS::ApiGateway::Model')
      .map(
        ({ properties }) =>
          z.looseObject({ required: z.array(z.string()) }).parse(properties['Schema']).required,
      );
    expect(required.toSorted()).toEqual([['deadline'], ['spec'], ['spec']]);
  });

  it('has the gateway log only where that is asked for, since that takes a setting of the whole account', () => {
    const [stage] = system.resources('AWS::ApiGateway::Stage');
    expect(stage?.properties['AccessLogSetting']).toBeUndefined();
    const logging = synthesized({ apiLogs: 'true' });
    const [logged] = logging.resources('AWS::ApiGateway::Stage');
    expect(JSON.stringify(logged?.properties['AccessLogSetting'])).toContain('$context.requestId');
    for (const each of [system, logging]) expect(each.resources('AWS::ApiGateway::Account')).toEqual([]);
  });
});
