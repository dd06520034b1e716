import { randomBytes, randomUUID } from 'node:crypto';

import { EcsError, invalidParameter } from './model.ts';
import type { EcsServerOptions, LocalTaskDefinition, TaskView } from './model.ts';
import { parseRunTask, readInteger, readText, readTexts } from './request.ts';
import type { Fields, RunTaskRequest } from './request.ts';
import { Task } from './task.ts';

/** What a client token was used for: its second use starts nothing, and is answered as the first, also where that failed. */
interface TokenUse {
  readonly requestJson: string;
  readonly response: RunTaskResponse;
}

interface RunTaskResponse {
  /** A task id, for the description of the task as it now is. */
  readonly tasks: readonly Task[];
  readonly failures: readonly object[];
}

const DEFAULT_ACCOUNT_ID = '000000000000';
const MAX_STOPPED_KEPT = 1_000;
const MAX_TOKENS_KEPT = 10_000;
const MAX_DESCRIBED = 100;
const MAX_LISTED = 100;
const CLOSE_GRACE_MS = 2_000;

/** The operations on tasks, without the wire. Each throws EcsError where AWS refuses. */
export class ClusterService {
  private readonly options: EcsServerOptions;
  private readonly metadataBaseUrl: () => string;
  /** By task id, in the order of their start. */
  private readonly tasks = new Map<string, Task>();
  private readonly tokens = new Map<string, TokenUse>();
  private startedTasks = 0;
  private isClosed = false;

  /** `metadataBaseUrl` is asked only when a task starts. */
  constructor(options: EcsServerOptions, metadataBaseUrl: () => string) {
    if (!Number.isInteger(options.maxTasks) || options.maxTasks < 0) {
      throw new RangeError(`maxTasks must be a whole number of at least 0, not ${String(options.maxTasks)}`);
    }
    this.options = options;
    this.metadataBaseUrl = metadataBaseUrl;
  }

  /** Tasks that are kept, oldest first. */
  views(): TaskView[] {
    return [...this.tasks.values()].map((task) => task.view());
  }

  /** The task whose metadata has that address; undefined if there is none, or it is forgotten. */
  find(metadataId: string): Task | undefined {
    return [...this.tasks.values()].find(({ spec }) => spec.metadataUrl.endsWith(`/${metadataId}`));
  }

  /** RunTask: starts as many tasks as there is room for; the rest are failures. */
  runTask(fields: Fields): object {
    if (this.isClosed)
      throw new EcsError('ServerException', 'The service is shutting down.', { status: 500 });
    const request = parseRunTask(fields);
    const clusterName = this.clusterOf(request.cluster);
    const definition = this.definitionOf(request.taskDefinition);
    const wrong = request.overrides.find(({ name }) => name !== definition.containerName);
    if (wrong !== undefined) {
      throw invalidParameter(
        `Override for container named ${wrong.name} is not a container in the TaskDefinition.`,
      );
    }

    const provider = request.capacityProvider;
    const offered = this.options.capacityProviders;
    if (provider !== undefined && offered?.get(clusterName)?.includes(provider) === false)
      throw invalidParameter(`The specified capacity provider ${provider} was not found.`);

    const requestJson = JSON.stringify(request);
    const token = request.clientToken === undefined ? undefined : `${clusterName}/${request.clientToken}`;
    const earlier = token === undefined ? undefined : this.tokens.get(token);
    if (earlier !== undefined && earlier.requestJson !== requestJson) {
      throw new EcsError('ConflictException', 'The client token was used for another request.', {
        details: { resourceIds: earlier.response.tasks.map(({ arn }) => arn) },
      });
    }
    const response = earlier?.response ?? this.startTasks(request, clusterName, definition);
    if (token !== undefined) this.remember(token, { requestJson, response });
    const tasks = response.tasks.map((task) => task.describe());
    if (earlier === undefined) for (const task of response.tasks) task.start();
    return { tasks, failures: response.failures };
  }

  /** StopTask: the process gets SIGTERM now, and SIGKILL later. */
  stopTask(fields: Fields): object {
    const clusterName = this.clusterOf(readText(fields, 'cluster') ?? 'default');
    const task = this.taskOf(readText(fields, 'task') ?? '', clusterName);
    if (task === undefined) throw invalidParameter('The referenced task was not found.');
    task.stop(readText(fields, 'reason') ?? 'Task stopped by user');
    return { task: task.describe() };
  }

  /** DescribeTasks: unknown tasks are failures with the reason MISSING. */
  describeTasks(fields: Fields): object {
    const clusterName = this.clusterOf(readText(fields, 'cluster') ?? 'default');
    const wanted = readTexts(fields, 'tasks') ?? [];
    if (wanted.length === 0) throw invalidParameter('Tasks cannot be empty.');
    if (wanted.length > MAX_DESCRIBED)
      throw invalidParameter(`Tasks can have at most ${String(MAX_DESCRIBED)} items.`);
    const tasks: object[] = [];
    const failures: object[] = [];
    for (const idOrArn of wanted) {
      const task = this.taskOf(idOrArn, clusterName);
      if (task === undefined) failures.push({ arn: this.taskArn(idOrArn, clusterName), reason: 'MISSING' });
      else tasks.push(task.describe());
    }
    return { tasks, failures };
  }

  /** ListTasks: pages of ARNs, oldest first, of running tasks unless asked for others. */
  listTasks(fields: Fields): object {
    const clusterName = this.clusterOf(readText(fields, 'cluster') ?? 'default');
    const family = readText(fields, 'family');
    const startedBy = readText(fields, 'startedBy');
    const status = readText(fields, 'desiredStatus') ?? 'RUNNING';
    const pageSize = readInteger(fields, 'maxResults') ?? MAX_LISTED;
    if (pageSize < 1 || pageSize > MAX_LISTED) {
      throw invalidParameter(`maxResults must be between 1 and ${String(MAX_LISTED)}.`);
    }
    const arns = [...this.tasks.values()]
      .filter(
        ({ spec, desiredStatus }) =>
          spec.clusterName === clusterName &&
          desiredStatus === status &&
          (family === undefined || spec.definition.family === family) &&
          (startedBy === undefined || spec.startedBy === startedBy),
      )
      .map(({ arn }) => arn);
    // The token is the last ARN given: it stays right while other tasks come and go.
    const last = readText(fields, 'nextToken');
    const from = last === undefined ? 0 : arns.indexOf(last) + 1;
    if (last !== undefined && from === 0) throw invalidParameter('Invalid token.');
    const page = arns.slice(from, from + pageSize);
    return { taskArns: page, ...(from + pageSize < arns.length ? { nextToken: page.at(-1) } : {}) };
  }

  /** Ends all tasks. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.tasks.values()].map((task) => task.end(CLOSE_GRACE_MS)));
  }

  private startTasks(
    request: RunTaskRequest,
    clusterName: string,
    definition: LocalTaskDefinition,
  ): RunTaskResponse {
    const running = [...this.tasks.values()].filter((task) => !task.isStopped).length;
    const room = Math.max(0, Math.min(request.count, this.options.maxTasks - running));
    const tasks: Task[] = [];
    for (let started = 0; started < room; started++) {
      tasks.push(this.createTask(request, clusterName, definition));
    }
    const failures = Array.from({ length: request.count - room }, () => ({
      arn: this.clusterArn(clusterName),
      reason: 'RESOURCE:CPU',
      detail: `all ${String(this.options.maxTasks)} places for tasks are taken`,
    }));
    return { tasks, failures };
  }

  private createTask(request: RunTaskRequest, clusterName: string, definition: LocalTaskDefinition): Task {
    const taskId = randomUUID().replaceAll('-', '');
    // Not the task's id, which many see: this one is known to the task alone.
    const metadataId = randomBytes(16).toString('hex');
    const taskIndex = this.startedTasks++;
    const subnetId = request.subnets[taskIndex % request.subnets.length] ?? '';
    const task = new Task({
      taskId,
      clusterName,
      clusterArn: this.clusterArn(clusterName),
      definition,
      override: request.overrides[0],
      memoryMb: request.memoryMb ?? definition.memoryMb,
      capacityProvider: request.capacityProvider,
      subnetId,
      zone: this.options.zoneOf?.({ subnetId, taskIndex }) ?? `${this.options.region}a`,
      startedBy: request.startedBy,
      metadataUrl: `${this.metadataBaseUrl()}/${metadataId}`,
      server: this.options,
    });
    this.forgetOldest();
    this.tasks.set(taskId, task);
    return task;
  }

  private forgetOldest(): void {
    const stopped = [...this.tasks].filter(([, task]) => task.isStopped);
    for (const [taskId] of stopped.slice(0, Math.max(0, stopped.length - MAX_STOPPED_KEPT))) {
      this.tasks.delete(taskId);
    }
  }

  private remember(token: string, use: TokenUse): void {
    this.tokens.set(token, use);
    const [oldest] = this.tokens.keys();
    if (this.tokens.size > MAX_TOKENS_KEPT && oldest !== undefined) this.tokens.delete(oldest);
  }

  private clusterArn(clusterName: string): string {
    const { region, accountId = DEFAULT_ACCOUNT_ID } = this.options;
    return `arn:aws:ecs:${region}:${accountId}:cluster/${clusterName}`;
  }

  private clusterOf(nameOrArn: string): string {
    const name = nameOrArn.startsWith('arn:') ? nameOrArn.slice(nameOrArn.lastIndexOf('/') + 1) : nameOrArn;
    if (this.options.clusters.includes(name)) return name;
    throw new EcsError('ClusterNotFoundException', 'Cluster not found.');
  }

  private definitionOf(familyOrArn: string): LocalTaskDefinition {
    const found = this.options.taskDefinitions.find(
      ({ family, arn }) =>
        familyOrArn === family || familyOrArn === arn || familyOrArn === arn.slice(arn.lastIndexOf('/') + 1),
    );
    if (found === undefined) throw new EcsError('ClientException', 'TaskDefinition not found.');
    return found;
  }

  private taskArn(idOrArn: string, clusterName: string): string {
    if (idOrArn.startsWith('arn:')) return idOrArn;
    return `${this.clusterArn(clusterName).replace(':cluster/', ':task/')}/${idOrArn}`;
  }

  private taskOf(idOrArn: string, clusterName: string): Task | undefined {
    const task = this.tasks.get(idOrArn.slice(idOrArn.lastIndexOf('/') + 1));
    return task?.arn === this.taskArn(idOrArn, clusterName) ? task : undefined;
  }
}
