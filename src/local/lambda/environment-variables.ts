import { dirname } from 'node:path';
import { getCompileCacheDir } from 'node:module';
import { nativeModulesPath } from '../native-modules-path.ts';
import { keyVariables } from '../http/principals.ts';
import type { LambdaServerOptions, LocalFunction } from './model.ts';

/** What the variables of one environment depend on. */
export interface VariablesInput {
  readonly fn: LocalFunction;
  readonly server: LambdaServerOptions;
  readonly environmentId: string;
  /** `host:port` of its Runtime API, which serves the metadata too. */
  readonly runtimeApi: string;
  readonly metadataToken: string;
  readonly scratchPath: string;
}

/**
 * All variables that a function sees: its own, the stack's, and those that AWS
 * reserves, which win. Only PATH comes from this process.
 */
export function buildEnvironmentVariables(input: VariablesInput): Record<string, string> {
  const { fn, server, environmentId } = input;
  const day = new Date().toISOString().slice(0, 10).replaceAll('-', '/');
  return {
    PATH: process.env['PATH'] ?? '',
    NODE_PATH: nativeModulesPath(),
    LANG: 'en_US.UTF-8',
    TZ: ':UTC',
    ...fn.environment,
    ...server.extraEnvironment,
    ...keyVariables(server.credentialsOf?.(fn.name) ?? server.credentials),
    _HANDLER: fn.handler,
    AWS_DEFAULT_REGION: server.region,
    AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(fn.memoryMb),
    AWS_LAMBDA_FUNCTION_NAME: fn.name,
    AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
    AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${fn.name}`,
    AWS_LAMBDA_LOG_STREAM_NAME: `${day}/[$LATEST]${environmentId}`,
    AWS_LAMBDA_METADATA_API: input.runtimeApi,
    AWS_LAMBDA_METADATA_TOKEN: input.metadataToken,
    AWS_LAMBDA_RUNTIME_API: input.runtimeApi,
    AWS_REGION: server.region,
    LAMBDA_TASK_ROOT: fn.codeDir,
    TMPDIR: input.scratchPath,
    ...compileCache(),
  };
}

/**
 * Where this process keeps what it has compiled, if it does, its functions do so too: half of what an environment takes
 * to start is the compiling of its bundle. Node names a directory of its own in it by version.
 */
function compileCache(): Record<string, string> {
  const own = getCompileCacheDir();
  return own === undefined ? {} : { NODE_COMPILE_CACHE: dirname(own) };
}
