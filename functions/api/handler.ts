import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';
import { buildApiDeps } from '../shared/build-deps.ts';
import { answer } from './routes.ts';

const deps = buildApiDeps(process.env); // Per cold start; fails on missing settings.

/** Serves every route of the REST API. */
export const handler = (event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> => answer(deps, event);
