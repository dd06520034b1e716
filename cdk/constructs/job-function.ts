import { Duration, type Size } from 'aws-cdk-lib';
import { type IRole, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import {
  Architecture,
  type AssetCode,
  Function as LambdaFunction,
  type IDestination,
  Runtime,
  TenancyConfig,
} from 'aws-cdk-lib/aws-lambda';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';

export interface JobFunctionProps {
  readonly description: string;
  readonly code: AssetCode;
  readonly memoryMb: number;
  readonly timeout: Duration;
  readonly environment: Record<string, string>;
  readonly logs: ILogGroup;
  /** Shared with other functions; by default a role of its own. */
  readonly role?: IRole;
  readonly ephemeralStorage?: Size;
  /**
   * Of asynchronous invocations. By default there are none, since the scheduler launches again what fails, and events
   * grow no older than two minutes.
   */
  readonly retries?: { readonly attempts: 0 | 1 | 2; readonly maxAge: Duration };
  /** Where Lambda sends asynchronous events that it could not have handled, with why. */
  readonly onFailure?: IDestination;
  /** Whether each environment serves one tenant; every invocation must then name its tenant. Fixed at creation. */
  readonly isPerTenant?: boolean;
  /** Executions that are reserved for it, and that it may have at once; absent: it shares the account's. */
  readonly concurrency?: number | undefined;
}

/**
 * A role for a function: may write to the log group and nothing else. AWS's managed policy for this purpose
 * would allow writing to every log group of the account.
 */
export function functionRole(scope: Construct, id: string, logs: ILogGroup): Role {
  const role = new Role(scope, id, { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
  logs.grantWrite(role);
  return role;
}

/** A function on Node 24 and arm64. */
export function jobFunction(scope: Construct, id: string, props: JobFunctionProps): LambdaFunction {
  return new LambdaFunction(scope, id, {
    description: props.description,
    runtime: Runtime.NODEJS_24_X,
    architecture: Architecture.ARM_64,
    handler: 'index.handler',
    code: props.code,
    memorySize: props.memoryMb,
    timeout: props.timeout,
    environment: props.environment,
    role: props.role ?? functionRole(scope, `${id}Role`, props.logs),
    logGroup: props.logs,
    retryAttempts: props.retries?.attempts ?? 0,
    maxEventAge: props.retries?.maxAge ?? Duration.minutes(2),
    ...(props.onFailure === undefined ? {} : { onFailure: props.onFailure }),
    ...(props.isPerTenant === true ? { tenancyConfig: TenancyConfig.PER_TENANT } : {}),
    ...(props.concurrency === undefined ? {} : { reservedConcurrentExecutions: props.concurrency }),
    ...(props.ephemeralStorage === undefined ? {} : { ephemeralStorageSize: props.ephemeralStorage }),
  });
}
