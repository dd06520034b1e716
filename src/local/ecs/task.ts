import { constants } from 'node:os';
import { join } from 'node:path';

import { nativeModulesPath } from '../native-modules-path.ts';
import { skewedClock } from '../inject/clock-skew.ts';
import { keyVariables } from '../http/principals.ts';
import { openLogFile } from '../lambda/log-file.ts';
import type { LogFile } from '../lambda/log-file.ts';
import { startLoggedProcess } from '../lambda/logged-process.ts';
import type { LoggedProcess, ProcessExit } from '../lambda/logged-process.ts';
import { endForMemory, exitWithin } from '../lambda/memory-watch.ts';
import { makeScratchFolder } from '../lambda/scratch-folder.ts';
import type { ScratchFolder } from '../lambda/scratch-folder.ts';
import type { EcsServerOptions, LocalTaskDefinition, StopCode, TaskStatus, TaskView } from './model.ts';
import type { ContainerOverride } from './request.ts';

/** What a task is made from. */
export interface TaskSpec {
  readonly taskId: string;
  readonly clusterName: string;
  readonly clusterArn: string;
  readonly definition: LocalTaskDefinition;
  readonly override: ContainerOverride | undefined;
  /** What it may take, with all that it starts. */
  readonly memoryMb: number;
  readonly capacityProvider: string | undefined;
  readonly subnetId: string;
  readonly zone: string;
  readonly startedBy: string | undefined;
  /** Where the task finds its metadata, without `/task`. */
  readonly metadataUrl: string;
  readonly server: EcsServerOptions;
}

const PRELOAD_URL = new URL('../lambda/end-with-parent-preload.ts', import.meta.url).href;
const DEFAULT_STOP_TIMEOUT_MS = 30_000;
const OUT_OF_MEMORY_EXIT = 137;
const SIGNAL_EXIT_BASE = 128;

function exitCodeOf(exit: ProcessExit): number | undefined {
  if (exit.signal !== null) return SIGNAL_EXIT_BASE + constants.signals[exit.signal];
  return exit.code ?? undefined;
}

const inSeconds = (epochMs: number | undefined) => (epochMs === undefined ? undefined : epochMs / 1000);

/** One task and its process, from PROVISIONING to STOPPED. */
export class Task {
  readonly spec: TaskSpec;
  readonly arn: string;
  private readonly log: LogFile;
  private readonly createdAtMs = Date.now();
  private child: LoggedProcess | undefined;
  /** Settles when the process, its scratch folder and its log are gone. */
  private gone: Promise<void> | undefined;
  private status: TaskStatus = 'PROVISIONING';
  private isStopWanted = false;
  private startedAtMs: number | undefined;
  private stoppedAtMs: number | undefined;
  private stopCode: StopCode | undefined;
  private stoppedReason: string | undefined;
  private exitCode: number | undefined;
  /** It was ended for its memory. A program whose own heap is full ends itself, of which ECS gives no reason. */
  private ranOutOfMemory = false;
  private wasLost = false;
  private isAtWork = false;

  constructor(spec: TaskSpec) {
    const { server, clusterArn, taskId } = spec;
    this.spec = spec;
    this.arn = `${clusterArn.replace(':cluster/', ':task/')}/${taskId}`;
    this.log = openLogFile(join(server.logDir, spec.definition.family, `${taskId}.log`));
  }

  get isStopped(): boolean {
    return this.status === 'STOPPED';
  }

  get desiredStatus(): 'RUNNING' | 'STOPPED' {
    return this.isStopWanted || this.isStopped ? 'STOPPED' : 'RUNNING';
  }

  /** Starts the process; one that cannot start stops the task, with the reason. Called once. */
  start(): void {
    this.gone = this.live();
  }

  /** SIGTERM, then SIGKILL; a task that has stopped keeps its first reason. */
  stop(reason: string, timeoutMs = this.spec.server.stopTimeoutMs ?? DEFAULT_STOP_TIMEOUT_MS): void {
    this.stopAs('UserInitiated', reason, timeoutMs);
  }

  /** As `stop`, for want of its place on Spot, of which the notice is so long. Answers false, and does nothing, where it was told to stop before. */
  interrupt(noticeMs: number): boolean {
    return this.stopAs('SpotInterruption', 'Your Spot Task was interrupted.', noticeMs);
  }

  /** Ends the process soon, whatever was asked before; resolves when it is gone. */
  async end(graceMs: number): Promise<void> {
    this.stop('Server closed', graceMs);
    const killer = setTimeout(() => this.child?.signal('SIGKILL'), graceMs);
    await this.gone;
    clearTimeout(killer);
  }

  view(): TaskView {
    const { exitCode, stoppedReason } = this;
    const { definition, zone } = this.spec;
    const pid = this.isStopped ? undefined : this.child?.pid;
    return {
      taskArn: this.arn,
      family: definition.family,
      pid,
      lastStatus: this.status,
      zone,
      exitCode,
      stoppedReason,
    };
  }

  /** As DescribeTasks shows it. */
  describe(): Readonly<Record<string, unknown>> {
    const { definition, override, clusterArn, zone, startedBy, subnetId, taskId, memoryMb } = this.spec;
    const environment = Object.entries(override?.environment ?? {}).map(([name, value]) => ({ name, value }));
    return {
      taskArn: this.arn,
      clusterArn,
      taskDefinitionArn: definition.arn,
      group: `family:${definition.family}`,
      launchType: 'FARGATE',
      memory: String(memoryMb),
      ...(this.spec.capacityProvider === undefined
        ? {}
        : { capacityProviderName: this.spec.capacityProvider }),
      availabilityZone: zone,
      startedBy,
      lastStatus: this.status,
      desiredStatus: this.desiredStatus,
      createdAt: inSeconds(this.createdAtMs),
      startedAt: inSeconds(this.startedAtMs),
      stoppedAt: inSeconds(this.stoppedAtMs),
      stopCode: this.stopCode,
      stoppedReason: this.stoppedReason,
      attachments: [
        { id: taskId, type: 'ElasticNetworkInterface', details: [{ name: 'subnetId', value: subnetId }] },
      ],
      containers: [
        {
          containerArn: this.arn.replace(':task/', ':container/'),
          taskArn: this.arn,
          name: definition.containerName,
          lastStatus: this.status === 'PROVISIONING' ? 'PENDING' : this.status,
          exitCode: this.exitCode,
          reason: this.ranOutOfMemory ? 'OutOfMemoryError: Container killed due to memory usage' : undefined,
        },
      ],
      overrides: {
        containerOverrides:
          override === undefined ? [] : [{ name: override.name, command: override.command, environment }],
      },
    };
  }

  /** As `${ECS_CONTAINER_METADATA_URI_V4}/task` shows it. */
  metadata(): object {
    this.announceWork();
    const { definition, clusterArn, zone } = this.spec;
    return {
      Cluster: clusterArn,
      TaskARN: this.arn,
      Family: definition.family,
      Revision: definition.arn.split(':').at(-1),
      DesiredStatus: this.desiredStatus,
      KnownStatus: this.status,
      Limits: { Memory: definition.memoryMb },
      AvailabilityZone: zone,
      LaunchType: 'FARGATE',
      Containers: [this.containerMetadata()],
    };
  }

  /** As `${ECS_CONTAINER_METADATA_URI_V4}` itself shows it. */
  containerMetadata(): object {
    const { definition, clusterArn, taskId } = this.spec;
    return {
      DockerId: taskId,
      Name: definition.containerName,
      KnownStatus: this.status,
      Type: 'NORMAL',
      Networks: [{ NetworkMode: 'awsvpc', IPv4Addresses: ['127.0.0.1'] }],
      Labels: {
        'com.amazonaws.ecs.cluster': clusterArn,
        'com.amazonaws.ecs.container-name': definition.containerName,
        'com.amazonaws.ecs.task-arn': this.arn,
        'com.amazonaws.ecs.task-definition-family': definition.family,
      },
    };
  }

  /** A program asks where it is when it has started and is about to work. */
  private announceWork(): void {
    const pid = this.child?.pid;
    if (pid === undefined || this.isAtWork || this.isStopped) return;
    this.isAtWork = true;
    this.spec.server.onWork?.({
      name: this.spec.definition.family,
      place: this.arn,
      pid,
      zone: this.spec.zone,
      isUnderWay: () => this.status === 'RUNNING',
      interrupt: (noticeMs) => this.interrupt(noticeMs),
      lose: () => {
        this.wasLost = true;
      },
      exhaust: () => {
        this.ranOutOfMemory = true;
        if (this.child !== undefined) endForMemory(this.child);
      },
    });
  }

  private stopAs(code: StopCode, reason: string, timeoutMs: number): boolean {
    if (this.isStopWanted || this.isStopped) return false;
    this.isStopWanted = true;
    this.stopCode = code;
    this.stoppedReason = reason;
    void this.child?.stop(timeoutMs);
    return true;
  }

  private async live(): Promise<void> {
    const { server, taskId } = this.spec;
    let scratch: ScratchFolder | undefined;
    let exit: ProcessExit = { code: null, signal: null };
    try {
      scratch = makeScratchFolder(server.scratchDir, `ecs-${taskId}`);
      const child = this.startProcess(scratch.path);
      if (child.pid !== undefined) {
        this.startedAtMs = Date.now();
        this.changeTo('RUNNING');
      }
      exit = await exitWithin(child, this.spec.memoryMb, () => {
        this.ranOutOfMemory = true;
      });
    } catch (cause) {
      this.writeLine(`task failed to start: ${String(cause)}`);
    }
    this.settle(exit);
    await Promise.all([scratch?.remove(), this.log.close()]);
  }

  private startProcess(scratchPath: string): LoggedProcess {
    const { definition, override, server } = this.spec;
    const [program = '', ...args] = override?.command ?? definition.command;
    const isNode = program === 'node';
    const clock = skewedClock(server.onClock?.({ name: definition.family, place: this.arn }) ?? 0);
    const nodeFlags = ['--import', PRELOAD_URL, ...clock.flags];
    this.child = startLoggedProcess({
      command: isNode ? server.nodePath : program,
      args: isNode ? [...nodeFlags, ...args] : args,
      cwd: definition.cwd,
      environment: { ...this.variables(), ...clock.variables, TMPDIR: scratchPath },
      onLine: (line) => {
        this.writeLine(line);
      },
    });
    return this.child;
  }

  private writeLine(line: string): void {
    this.log.write(line);
    this.spec.server.onLog?.({ taskArn: this.arn, line });
  }

  private variables(): Record<string, string> {
    const { definition, override, server, metadataUrl } = this.spec;
    return {
      PATH: process.env['PATH'] ?? '',
      NODE_PATH: nativeModulesPath(),
      ...definition.environment,
      ...server.extraEnvironment,
      ...override?.environment,
      ...keyVariables(server.credentialsOf?.(definition.family) ?? server.credentials),
      AWS_DEFAULT_REGION: server.region,
      AWS_EXECUTION_ENV: 'AWS_ECS_FARGATE',
      AWS_REGION: server.region,
      ECS_CONTAINER_METADATA_URI_V4: metadataUrl,
    };
  }

  private settle(exit: ProcessExit): void {
    this.stoppedAtMs = Date.now();
    this.exitCode = this.ranOutOfMemory ? OUT_OF_MEMORY_EXIT : exitCodeOf(exit);
    if (this.wasLost && !this.ranOutOfMemory) {
      this.exitCode = undefined;
      this.stopCode ??= 'EssentialContainerExited';
      this.stoppedReason ??= 'The host of the task was lost';
    }
    if (this.stopCode === undefined) {
      const hasStarted = this.startedAtMs !== undefined;
      this.stopCode = hasStarted ? 'EssentialContainerExited' : 'TaskFailedToStart';
      this.stoppedReason = hasStarted
        ? 'Essential container in task exited'
        : 'CannotStartContainerError: the command could not be started';
    }
    this.changeTo('STOPPED');
  }

  private changeTo(status: TaskStatus): void {
    this.status = status;
    this.spec.server.onTaskChange?.(this.view(), this.describe());
  }
}
