/** What a route needs to be found by: an HTTP method and a path such as `/jobs/{id}` or `/files/{path+}`. */
export interface RoutePattern {
  /** Upper case, or `ANY`. */
  readonly method: string;
  readonly path: string;
}

export interface RouteMatch<Route> {
  readonly route: Route;
  /** As they stood in the request: a REST API does not decode them. */
  readonly pathParameters: Readonly<Record<string, string>>;
}

/**
 * Finds the route for a request as API Gateway does: the path decides first, fixed segments
 * before parameters and parameters before greedy ones; then the method. A path that exists
 * without the method has no match, and is not tried against a less specific one.
 *
 * @param path - encoded, without the stage, beginning with a slash.
 */
export function matchRoute<Route extends RoutePattern>(
  routes: readonly Route[],
  method: string,
  path: string,
): RouteMatch<Route> | undefined {
  const segments = segmentsOf(path);
  const fitting = routes
    .map((route) => ({ route, pattern: segmentsOf(route.path) }))
    .map(({ route, pattern }) => ({
      route,
      rank: rankOf(pattern),
      pathParameters: matchSegments(pattern, segments),
    }))
    .filter(({ pathParameters }) => pathParameters !== undefined)
    .sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0));
  const best = fitting[0];
  if (best === undefined) return undefined;
  const sameResource = fitting.filter(({ route }) => route.path === best.route.path);
  const found =
    sameResource.find(({ route }) => route.method === method) ??
    sameResource.find(({ route }) => route.method === 'ANY');
  return found?.pathParameters === undefined
    ? undefined
    : { route: found.route, pathParameters: found.pathParameters };
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

/** Compares segment by segment: fixed, then parameter, then greedy. */
function rankOf(pattern: readonly string[]): string {
  return pattern
    .map((segment) => (segment.endsWith('+}') ? '2' : segment.startsWith('{') ? '1' : '0'))
    .join('');
}

function matchSegments(
  pattern: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | undefined {
  const parameters: Record<string, string> = {};
  for (const [index, part] of pattern.entries()) {
    const segment = segments[index];
    if (segment === undefined) return undefined;
    if (part.endsWith('+}')) {
      parameters[part.slice(1, -2)] = segments.slice(index).join('/');
      return parameters;
    }
    if (part.startsWith('{')) parameters[part.slice(1, -1)] = segment;
    else if (part !== segment) return undefined;
  }
  return segments.length === pattern.length ? parameters : undefined;
}
