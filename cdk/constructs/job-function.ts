import { Duration, type Size } from 'aws-cdk-lib';
import { type IRole, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import {
  Architecture,
  type AssetCode,
  Function as LambdaFunction,
  type IDestination,
  type ILayerVersion,
  Runtime,
  TenancyConfig,
} from 'aws-cdk-lib/aws-lambda';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { acknowledge } from './acknowledge.ts';
import type { ManagedRuntime } from './python-runtime.ts';

export interface JobFunctionProps {
  readonly description: string;
  readonly code: AssetCode;
  readonly memoryMb: number;
  readonly timeout: Duration;
  readonly environment: Record<string, string>;
  readonly logs: ILogGroup;
  /** What it needs besides its bundle. */
  readonly layers?: readonly ILayerVersion[];
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
  /** Of another language, with Node beside it; absent: Node's own. */
  readonly managed?: ManagedRuntime | undefined;
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

/** A function on Node 24 and arm64, or on another managed runtime with Node beside it. */
export function jobFunction(scope: Construct, id: string, props: JobFunctionProps): LambdaFunction {
  const layers = [...(props.layers ?? []), ...(props.managed === undefined ? [] : [props.managed.layer])];
  const made = new LambdaFunction(scope, id, {
    description: props.description,
    runtime: props.managed?.runtime ?? Runtime.NODEJS_24_X,
    architecture: props.managed?.architecture ?? Architecture.ARM_64,
    handler: 'index.handler',
    code: props.code,
    memorySize: props.memoryMb,
    timeout: props.timeout,
    environment: { ...props.environment, ...props.managed?.environment },
    role: props.role ?? functionRole(scope, `${id}Role`, props.logs),
    logGroup: props.logs,
    retryAttempts: props.retries?.attempts ?? 0,
    maxEventAge: props.retries?.maxAge ?? Duration.minutes(2),
    ...(layers.length === 0 ? {} : { layers }),
    ...(props.onFailure === undefined ? {} : { onFailure: props.onFailure }),
    ...(props.isPerTenant === true ? { tenancyConfig: TenancyConfig.PER_TENANT } : {}),
    ...(props.concurrency === undefined ? {} : { reservedConcurrentExecutions: props.concurrency }),
    ...(props.ephemeralStorage === undefined ? {} : { ephemeralStorageSize: props.ephemeralStorage }),
  });
  if (props.managed !== undefined)
    acknowledge(made, {
      'AwsSolutions-L1':
        'The runtime is what programs of jobs run on; the worker itself runs on the Node of the layer.',
    });
  return made;
}
