import type { FaultHook } from '../http/fault-hook.ts';
import type { ClockHook } from '../inject/start.ts';
import type { WorkHook } from '../inject/work.ts';
import type { Principals } from '../http/principals.ts';
import type { Credentials } from '../http/sigv4.ts';

/** A task definition with one container, as the template describes it. */
export interface LocalTaskDefinition {
  readonly family: string;
  /** Ends in `task-definition/<family>:<revision>`. */
  readonly arn: string;
  readonly containerName: string;
  /** What the container runs; a first word `node` means the Node of the stack. */
  readonly command: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly memoryMb: number;
}

/** Where a task is placed. */
export interface Placement {
  /** Of those that the request names; they take turns. */
  readonly subnetId: string;
  /** Counts the tasks of the server. */
  readonly taskIndex: number;
}

export interface EcsServerOptions {
  /** 0 or absent: any free port. */
  readonly port?: number;
  readonly credentials: Credentials;
  /** Whose keys are accepted; absent: `credentials` alone. */
  readonly principals?: Principals;
  readonly region: string;
  /** Part of ARNs; twelve zeros by default. */
  readonly accountId?: string;
  /** Names of clusters. */
  readonly clusters: readonly string[];
  readonly taskDefinitions: readonly LocalTaskDefinition[];
  /** Tasks that run at once; those beyond it fail with `RESOURCE:CPU`. */
  readonly maxTasks: number;
  /** One file per task is appended to: `<family>/<taskId>.log`. */
  readonly logDir: string;
  /** Holds a private TMPDIR for each task while it runs; the system's by default. */
  readonly scratchDir?: string;
  readonly nodePath: string;
  /** Keys of the role of a family's tasks; those of the one caller where nothing is said. */
  readonly credentialsOf?: (family: string) => Credentials | undefined;
  /** Endpoints and the like, for all tasks. */
  readonly extraEnvironment: Readonly<Record<string, string>>;
  /** Zone name of a task; the region's `a` by default. */
  readonly zoneOf?: (placement: Placement) => string;
  /** From SIGTERM to SIGKILL; 30 s by default, as on AWS. */
  readonly stopTimeoutMs?: number;
  readonly onRequest?: FaultHook;
  /** `host:port` of proxies before it that pass requests on as they were signed. */
  readonly hosts?: ReadonlySet<string>;
  /** Told of each task whose program has started so far that it asks for the metadata of the task. */
  readonly onWork?: WorkHook;
  /** Says how far the clock of a task is ahead. */
  readonly onClock?: ClockHook;
  /** Each line of output, as it is written to the log. */
  readonly onLog?: (entry: { readonly taskArn: string; readonly line: string }) => void;
  /** Called when a task changes its status, with what DescribeTasks would say of it. */
  readonly onTaskChange?: (task: TaskView, description: Readonly<Record<string, unknown>>) => void;
  /** Names of capacity providers that clusters offer, by the name of the cluster; absent: every one. */
  readonly capacityProviders?: ReadonlyMap<string, readonly string[]>;
}

export type TaskStatus = 'PROVISIONING' | 'RUNNING' | 'STOPPED';
export type StopCode =
  'UserInitiated' | 'SpotInterruption' | 'EssentialContainerExited' | 'TaskFailedToStart';

/** A task, for those who watch or harm it. */
export interface TaskView {
  readonly taskArn: string;
  readonly family: string;
  readonly pid: number | undefined;
  readonly lastStatus: TaskStatus;
  /** Zone name, such as `us-east-1a`. */
  readonly zone: string;
  readonly exitCode: number | undefined;
  readonly stoppedReason: string | undefined;
}

/** A refusal in AWS's words. */
export class EcsError extends Error {
  override readonly name = 'EcsError';
  /** Name of the SDK's exception. */
  readonly code: string;
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    more: { status?: number; details?: Record<string, unknown> } = {},
  ) {
    super(message);
    this.code = code;
    this.status = more.status ?? 400;
    this.details = more.details ?? {};
  }
}

/** An `InvalidParameterException`. */
export function invalidParameter(message: string): EcsError {
  return new EcsError('InvalidParameterException', message);
}
