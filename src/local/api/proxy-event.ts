import type { IncomingMessage } from 'node:http';

/** All that a proxy event is made of. */
export interface ProxyRequest {
  readonly request: IncomingMessage;
  readonly body: Buffer;
  readonly requestId: string;
  readonly stageName: string;
  readonly accountId: string;
  /** The resource's path: `/jobs/{id}`. */
  readonly resource: string;
  /** Encoded, without the stage. */
  readonly path: string;
  readonly query: string;
  readonly pathParameters: Readonly<Record<string, string>>;
  /** Whose signature was accepted; absent on a route without authorization. */
  readonly accessKey: string | undefined;
  readonly userArn: string | undefined;
  readonly nowMs: number;
}

/**
 * The event of a REST API's Lambda proxy integration (payload version 1.0).
 * Empty parameters and an empty body are `null`, as on AWS; the body is passed on as text.
 */
export function buildProxyEvent(source: ProxyRequest): Readonly<Record<string, unknown>> {
  const query = multiValues([...new URLSearchParams(source.query)]);
  const headers = multiValues(headerPairs(source.request.rawHeaders));
  return {
    resource: source.resource,
    path: source.path,
    httpMethod: source.request.method,
    headers: lastValues(headers),
    multiValueHeaders: headers,
    queryStringParameters: nullIfEmpty(lastValues(query)),
    multiValueQueryStringParameters: nullIfEmpty(query),
    pathParameters: nullIfEmpty(source.pathParameters),
    stageVariables: null,
    requestContext: requestContext(source),
    body: source.body.length === 0 ? null : source.body.toString('utf8'),
    isBase64Encoded: false,
  };
}

function requestContext(source: ProxyRequest): Readonly<Record<string, unknown>> {
  const { accessKey, accountId, request, userArn = null } = source;
  const domainName = request.headers.host ?? '127.0.0.1';
  return {
    accountId,
    apiId: 'local',
    resourceId: 'local',
    resourcePath: source.resource,
    httpMethod: request.method,
    path: `/${source.stageName}${source.path}`,
    protocol: `HTTP/${request.httpVersion}`,
    stage: source.stageName,
    domainName,
    domainPrefix: domainName.split('.')[0],
    requestId: source.requestId,
    extendedRequestId: source.requestId,
    requestTime: requestTime(source.nowMs),
    requestTimeEpoch: source.nowMs,
    identity: {
      accessKey: accessKey ?? null,
      accountId: accessKey === undefined ? null : accountId,
      caller: accessKey ?? null,
      user: accessKey ?? null,
      userArn,
      sourceIp: request.socket.remoteAddress ?? '127.0.0.1',
      userAgent: request.headers['user-agent'] ?? null,
      apiKey: null,
      apiKeyId: null,
      clientCert: null,
      cognitoAuthenticationProvider: null,
      cognitoAuthenticationType: null,
      cognitoIdentityId: null,
      cognitoIdentityPoolId: null,
      principalOrgId: null,
    },
  };
}

/** The Common Log Format that API Gateway uses: `09/Apr/2015:12:34:56 +0000`. */
function requestTime(nowMs: number): string {
  const [, day = '', month = '', year = '', time = ''] = new Date(nowMs).toUTCString().split(' ');
  return `${day}/${month}/${year}:${time} +0000`;
}

/** Names keep their case, as on AWS; the values of one name come together in order. */
function headerPairs(rawHeaders: readonly string[]): [string, string][] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, index) => [
    rawHeaders[2 * index] ?? '',
    rawHeaders[2 * index + 1] ?? '',
  ]);
}

function multiValues(pairs: readonly (readonly [string, string])[]): Record<string, string[]> {
  const values = new Map<string, string[]>();
  for (const [name, value] of pairs) values.set(name, [...(values.get(name) ?? []), value]);
  return Object.fromEntries(values);
}

function lastValues(values: Readonly<Record<string, readonly string[]>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, all]) => [name, all.at(-1) ?? '']));
}

function nullIfEmpty<T extends object>(values: T): T | null {
  return Object.keys(values).length === 0 ? null : values;
}
