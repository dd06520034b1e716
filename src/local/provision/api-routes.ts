import * as z from 'zod';
import type { ApiRoute, GatewayResponse } from '../api/server.ts';
import { LOCAL_ACCOUNT } from './identities.ts';
import { propertiesOf } from './properties.ts';
import { provisionError } from './provision-error.ts';
import type { ResolvedResource, ResolvedStacks } from './resolved-stacks.ts';

/** One stage of a REST API. */
export interface LocalApi {
  /** `https://…`, what templates take for its address, without a trailing slash. */
  readonly awsUrl: string;
  readonly stageName: string;
  readonly routes: readonly ApiRoute[];
  /** Answers of the front itself that the template changes, by their type. */
  readonly gatewayResponses: ReadonlyMap<string, GatewayResponse>;
}

const resourceProperties = z.looseObject({
  ParentId: z.string(),
  PathPart: z.string(),
  RestApiId: z.string(),
});
const stageProperties = z.looseObject({ RestApiId: z.string(), StageName: z.string() });
const validatorProperties = z.looseObject({ ValidateRequestBody: z.boolean().default(false) });
const modelProperties = z.looseObject({ Schema: z.record(z.string(), z.unknown()) });
const methodProperties = z.looseObject({
  HttpMethod: z.string(),
  AuthorizationType: z.enum(['AWS_IAM', 'NONE']),
  ResourceId: z.string(),
  RestApiId: z.string(),
  RequestValidatorId: z.string().optional(),
  RequestModels: z.record(z.string(), z.string()).default({}),
  Integration: z.looseObject({
    Type: z.literal('AWS_PROXY', 'must be AWS_PROXY: the embedded stack knows no other integration'),
    Uri: z.string(),
  }),
});
const permissionProperties = z.looseObject({
  Action: z.string(),
  FunctionName: z.string(),
  Principal: z.string(),
  SourceArn: z.string().optional(),
});

const gatewayResponseProperties = z.looseObject({
  RestApiId: z.string(),
  ResponseType: z.string(),
  StatusCode: z
    .string()
    .regex(/^[1-5]\d\d$/)
    .optional(),
  ResponseParameters: z.record(z.string(), z.string()).default({}),
});
const HEADER = 'gatewayresponse.header.';

/** Answers of one API; of their parameters those that set headers to a quoted text. */
function readGatewayResponses(
  resources: readonly ResolvedResource[],
  restApiId: string,
): ReadonlyMap<string, GatewayResponse> {
  const found = resources
    .map((resource) => propertiesOf(resource, gatewayResponseProperties))
    .filter(({ RestApiId }) => RestApiId === restApiId);
  return new Map(
    found.map(({ ResponseType, StatusCode, ResponseParameters }) => {
      const headers = Object.entries(ResponseParameters).flatMap(([name, value]): [string, string][] =>
        name.startsWith(HEADER) && /^'.*'$/.test(value)
          ? [[name.slice(HEADER.length).toLowerCase(), value.slice(1, -1)]]
          : [],
      );
      const status = StatusCode === undefined ? undefined : Number(StatusCode);
      return [ResponseType, { status, headers: Object.fromEntries(headers) }] as const;
    }),
  );
}

const MAX_PATH_PARTS = 32;

/** The stages of all REST APIs, with their routes. Throws ProvisionError as `planDeployment`. */
export function readApis({ resources }: ResolvedStacks, region: string): LocalApi[] {
  const of = (type: string): readonly ResolvedResource[] => resources.filter((found) => found.type === type);
  const lookup: Lookup = {
    region,
    resources: byRef(of('AWS::ApiGateway::Resource')),
    roots: new Set(
      of('AWS::ApiGateway::RestApi').map(({ identity }) => identity.attributes['RootResourceId'] ?? ''),
    ),
    validators: byRef(of('AWS::ApiGateway::RequestValidator')),
    models: byRef(of('AWS::ApiGateway::Model')),
    permissions: of('AWS::Lambda::Permission').map((found) => propertiesOf(found, permissionProperties)),
    functions: new Map(
      of('AWS::Lambda::Function').map(({ identity }) => [identity.attributes['Arn'] ?? '', identity.ref]),
    ),
  };
  return of('AWS::ApiGateway::Stage').map((stage) => {
    const { RestApiId, StageName } = propertiesOf(stage, stageProperties);
    const methods = of('AWS::ApiGateway::Method').filter(
      ({ properties }) => properties['RestApiId'] === RestApiId,
    );
    return {
      awsUrl: `https://${RestApiId}.execute-api.${region}.amazonaws.com/${StageName}`,
      stageName: StageName,
      routes: methods.map((method) => readRoute(method, lookup)),
      gatewayResponses: readGatewayResponses(of('AWS::ApiGateway::GatewayResponse'), RestApiId),
    };
  });
}

type Permission = z.output<typeof permissionProperties>;
type ByRef = ReadonlyMap<string, ResolvedResource>;

interface Lookup {
  readonly region: string;
  readonly resources: ByRef;
  readonly roots: ReadonlySet<string>;
  readonly validators: ByRef;
  readonly models: ByRef;
  readonly permissions: readonly Permission[];
  /** ARN → name. */
  readonly functions: ReadonlyMap<string, string>;
}

const byRef = (resources: readonly ResolvedResource[]): ByRef =>
  new Map(resources.map((resource) => [resource.identity.ref, resource]));

function readRoute(method: ResolvedResource, lookup: Lookup): ApiRoute {
  const found = propertiesOf(method, methodProperties);
  const path = pathOf(found.ResourceId, method, lookup);
  const arn = /:lambda:path\/2015-03-31\/functions\/(arn:[^/]+)\/invocations$/.exec(
    found.Integration.Uri,
  )?.[1];
  const functionName = lookup.functions.get(arn ?? '');
  if (arn === undefined || functionName === undefined) {
    throw provisionError(
      `${method.where} Properties.Integration.Uri`,
      `leads to no function: ${found.Integration.Uri}`,
    );
  }
  refuseWithoutPermission({ method, lookup, functionName, arn, path, found });
  const requestModel = modelOf(found, method, lookup);
  return {
    method: found.HttpMethod,
    path,
    functionName,
    authorization: found.AuthorizationType,
    ...(requestModel === undefined ? {} : { requestModel }),
  };
}

function pathOf(resourceId: string, method: ResolvedResource, { resources, roots }: Lookup): string {
  const parts: string[] = [];
  let id = resourceId;
  while (!roots.has(id)) {
    const resource = resources.get(id);
    if (resource === undefined || parts.length >= MAX_PATH_PARTS) {
      throw provisionError(`${method.where} Properties.ResourceId`, `leads to no root: ${id}`);
    }
    const { ParentId, PathPart } = propertiesOf(resource, resourceProperties);
    parts.unshift(PathPart);
    id = ParentId;
  }
  return `/${parts.join('/')}`;
}

function modelOf(
  { RequestModels, RequestValidatorId }: z.output<typeof methodProperties>,
  method: ResolvedResource,
  { models, validators }: Lookup,
): Readonly<Record<string, unknown>> | undefined {
  const name = RequestModels['application/json'];
  if (name === undefined || RequestValidatorId === undefined) return undefined;
  const validator = validators.get(RequestValidatorId);
  const model = models.get(name);
  if (validator === undefined) {
    throw provisionError(
      `${method.where} Properties.RequestValidatorId`,
      `there is no validator "${RequestValidatorId}"`,
    );
  }
  if (model === undefined)
    throw provisionError(`${method.where} Properties.RequestModels`, `there is no model "${name}"`);
  return propertiesOf(validator, validatorProperties).ValidateRequestBody
    ? propertiesOf(model, modelProperties).Schema
    : undefined;
}

interface PermissionQuestion {
  readonly method: ResolvedResource;
  readonly lookup: Lookup;
  readonly functionName: string;
  readonly arn: string;
  readonly path: string;
  readonly found: z.output<typeof methodProperties>;
}

/** Without a permission AWS answers each request with 500: better not to start. */
function refuseWithoutPermission({
  method,
  lookup,
  functionName,
  arn,
  path,
  found,
}: PermissionQuestion): void {
  const caller =
    `arn:aws:execute-api:${lookup.region}:${LOCAL_ACCOUNT}:${found.RestApiId}/` +
    `any-stage/${found.HttpMethod}${path.replaceAll(/\{[^}]+\}/g, '*')}`;
  const isAllowed = lookup.permissions.some(
    ({ Action, FunctionName, Principal, SourceArn }) =>
      Action === 'lambda:InvokeFunction' &&
      (FunctionName === arn || FunctionName === functionName) &&
      Principal === 'apigateway.amazonaws.com' &&
      (SourceArn === undefined || matches(SourceArn.replace(/(:[^:/]+)\/[^/]+\//, '$1/any-stage/'), caller)),
  );
  if (!isAllowed)
    throw provisionError(method.where, `no AWS::Lambda::Permission lets API Gateway invoke ${functionName}`);
}

/** `*` in a pattern stands for any text. */
function matches(pattern: string, text: string): boolean {
  const escaped = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${escaped.join('.*')}$`).test(text);
}
