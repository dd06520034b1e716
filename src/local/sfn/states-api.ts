import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { runnableDefinition } from './runnable.ts';
import { resumeExecution, runExecution } from './execution.ts';
import type { ExecutionDeps, InvokeLambda, RunningExecution } from './execution.ts';
import { ExecutionLog } from './execution-log.ts';
import type { ExecutionRecord } from './execution-log.ts';
import { executionEndedBadly } from './history.ts';
import { MAX_PAYLOAD_BYTES } from './payload.ts';
import { parseInput as parse, StatesError } from './states-error.ts';
import { isTokenOperation, performOnToken } from './token-operations.ts';
import { TaskTokens } from './task-tokens.ts';

/** A state machine to serve; intrinsics of the template are resolved already. */
export interface LocalStateMachine {
  readonly name: string;
  /** `arn:aws:states:REGION:ACCOUNT:stateMachine:NAME` */
  readonly arn: string;
  readonly definition: object;
  readonly type: 'STANDARD';
}

export interface StatesApiOptions {
  readonly region: string;
  readonly stateMachines: readonly LocalStateMachine[];
  readonly invokeLambda: InvokeLambda;
  readonly runDir?: string;
  /** Told of each execution that begins or ends. */
  readonly onStatus?: (record: ExecutionRecord) => void;
  /** Told why an execution cannot be kept on record any more, as on a full disk; it is suspended by then. */
  readonly onUnwritable?: (error: Error) => void;
}

interface Machine {
  readonly source: LocalStateMachine;
  readonly creationMs: number;
  readonly deps: ExecutionDeps;
}

type Input = Readonly<Record<string, unknown>>;
type Output = Readonly<Record<string, unknown>>;

/** AWS allows a million open executions; here each is work for this machine. */
const MAX_RUNNING = 1_000;
const DEFAULT_PAGE = 100;
const MAX_PAGE = 1_000;

// Whitespace, brackets, wildcards, special and control characters, as the API reference lists them.
const FORBIDDEN_IN_NAME = /[\s<>{}[\]?*"#%\\^|~`$&,;:/\p{Cc}]/u;

const page = {
  maxResults: z.int().min(0).max(MAX_PAGE).optional(),
  nextToken: z.string().max(3096).optional(),
};
const inputs = {
  StartExecution: z.object({
    stateMachineArn: z.string(),
    name: z.string().optional(),
    input: z.string().optional(),
  }),
  DescribeExecution: z.object({ executionArn: z.string() }),
  GetExecutionHistory: z.object({
    executionArn: z.string(),
    reverseOrder: z.boolean().optional(),
    includeExecutionData: z.boolean().optional(),
    ...page,
  }),
  StopExecution: z.object({
    executionArn: z.string(),
    error: z.string().max(256).optional(),
    cause: z.string().max(32_768).optional(),
  }),
  ListExecutions: z.object({
    stateMachineArn: z.string(),
    statusFilter: z
      .enum(['RUNNING', 'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED', 'PENDING_REDRIVE'])
      .optional(),
    ...page,
  }),
  DescribeStateMachine: z.object({ stateMachineArn: z.string() }),
};

/** Step Functions' operations over an execution log, without the wire. */
export class StatesApi {
  private readonly log: ExecutionLog;
  private readonly machines: ReadonlyMap<string, Machine>;
  private readonly running = new Map<string, RunningExecution>();
  private readonly tokens = new TaskTokens();
  /** From then on executions are put on record, and run by the next server. */
  private isSuspended = false;

  /**
   * Goes on at once with what ran when an earlier one over the same directory went away.
   *
   * @throws UnsupportedDefinitionError for the first definition outside the supported subset.
   */
  constructor(options: StatesApiOptions) {
    const log = new ExecutionLog(options.runDir, options.onStatus);
    this.log = log;
    this.machines = new Map(
      options.stateMachines.map((source) => [
        source.arn,
        {
          source,
          creationMs: Date.now(),
          deps: {
            log,
            region: options.region,
            roleArn: `arn:aws:iam::${source.arn.split(':')[4] ?? ''}:role/local`,
            invokeLambda: options.invokeLambda,
            tokens: this.tokens,
            onUnwritable: options.onUnwritable ?? (() => undefined),
            machine: { name: source.name, arn: source.arn, runnable: runnableDefinition(source.definition) },
          },
        },
      ]),
    );
    this.resumeAll();
  }

  /** Performs one operation. @throws StatesError with AWS's name for what is wrong. */
  perform(operation: string, input: Input): Output {
    if (isTokenOperation(operation)) return performOnToken(this.tokens, operation, input);
    switch (operation) {
      case 'StartExecution':
        return this.startExecution(parse(inputs.StartExecution, input));
      case 'DescribeExecution':
        return describe(this.execution(parse(inputs.DescribeExecution, input).executionArn));
      case 'GetExecutionHistory':
        return this.getHistory(parse(inputs.GetExecutionHistory, input));
      case 'StopExecution':
        return this.stopExecution(parse(inputs.StopExecution, input));
      case 'ListExecutions':
        return this.listExecutions(parse(inputs.ListExecutions, input));
      case 'DescribeStateMachine':
        return describeMachine(this.machine(parse(inputs.DescribeStateMachine, input).stateMachineArn));
      default:
        throw new StatesError('UnknownOperationException', `${operation} is not served here.`);
    }
  }

  /** Leaves whatever runs as it is on record, for a shutdown: the next one over the same directory goes on with it. */
  suspendAll(): void {
    this.isSuspended = true;
    for (const execution of this.running.values()) execution.suspend();
    this.running.clear();
  }

  /** Goes on with what an earlier server has left running; ends what belongs to no state machine any more. */
  private resumeAll(): void {
    for (const record of this.log.running()) {
      const { executionArn, stateMachineArn } = record;
      const machine = this.machines.get(stateMachineArn);
      if (machine !== undefined) {
        this.running.set(executionArn, resumeExecution(machine.deps, record));
        continue;
      }
      const cause = `There is no state machine '${stateMachineArn}' any more.`;
      const failure = { error: 'StateMachineDoesNotExist', cause };
      this.log.end(executionArn, {
        status: 'ABORTED',
        event: executionEndedBadly('ExecutionAborted', failure),
        failure,
      });
    }
  }

  private startExecution({
    stateMachineArn,
    name,
    input = '{}',
  }: z.infer<typeof inputs.StartExecution>): Output {
    const { source, deps } = this.machine(stateMachineArn);
    const given = checkName(name ?? randomUUID());
    checkInput(input);
    const executionArn = `${source.arn.replace(':stateMachine:', ':execution:')}:${given}`;

    const earlier = this.log.get(executionArn);
    if (earlier !== undefined) {
      if (earlier.status !== 'RUNNING' || earlier.input !== input) {
        throw new StatesError('ExecutionAlreadyExists', `Execution Already Exists: '${executionArn}'`);
      }
      return { executionArn, startDate: earlier.startMs / 1000 };
    }
    this.forgetEnded();
    if (this.running.size >= MAX_RUNNING) {
      throw new StatesError('ExecutionLimitExceeded', `${String(MAX_RUNNING)} executions are running.`);
    }
    const record = this.log.begin({ executionArn, stateMachineArn: source.arn, name: given, input });
    if (!this.isSuspended) this.running.set(executionArn, runExecution(deps, record));
    return { executionArn, startDate: record.startMs / 1000 };
  }

  private stopExecution({ executionArn, error, cause }: z.infer<typeof inputs.StopExecution>): Output {
    const record = this.execution(executionArn);
    // Stopping what has ended is no error, and changes nothing.
    const running = this.running.get(executionArn);
    running?.stop({ ...(error === undefined ? {} : { error }), ...(cause === undefined ? {} : { cause }) });
    // Nobody may be told so who would find it running again.
    if (running !== undefined && record.status === 'RUNNING')
      throw new Error(`${executionArn} is suspended, and cannot be stopped`);
    return { stopDate: (record.stopMs ?? Date.now()) / 1000 };
  }

  private getHistory(input: z.infer<typeof inputs.GetExecutionHistory>): Output {
    const { events } = this.execution(input.executionArn);
    const size = pageSize(input.maxResults);
    const skipped = readToken(input.nextToken);
    // By position from the chosen end: events are only ever added, so positions from the start hold.
    const ordered = input.reverseOrder === true ? events.toReversed() : events;
    const found = ordered.slice(skipped, skipped + size);
    const more =
      skipped + found.length < ordered.length ? { nextToken: writeToken(skipped + found.length) } : {};
    return { events: input.includeExecutionData === false ? found.map(withoutData) : found, ...more };
  }

  private listExecutions(input: z.infer<typeof inputs.ListExecutions>): Output {
    const { source } = this.machine(input.stateMachineArn);
    const before = input.nextToken === undefined ? Infinity : readToken(input.nextToken);
    const matching = this.log
      .list(source.arn)
      .filter(({ status, sequence }) => sequence < before && (input.statusFilter ?? status) === status);
    const found = matching.slice(0, pageSize(input.maxResults));
    const last = found.at(-1);
    const more =
      last !== undefined && found.length < matching.length ? { nextToken: writeToken(last.sequence) } : {};
    return { executions: found.map(summary), ...more };
  }

  private machine(arn: string): Machine {
    if (!/^arn:[^:]*:states:[^:]*:[^:]*:stateMachine:.+/.test(arn))
      throw new StatesError('InvalidArn', `Invalid Arn: '${arn}'`);
    const machine = this.machines.get(arn);
    if (machine === undefined)
      throw new StatesError('StateMachineDoesNotExist', `State Machine Does Not Exist: '${arn}'`);
    return machine;
  }

  private execution(arn: string): ExecutionRecord {
    if (!/^arn:[^:]*:states:[^:]*:[^:]*:execution:.+/.test(arn))
      throw new StatesError('InvalidArn', `Invalid Arn: '${arn}'`);
    const record = this.log.get(arn);
    if (record === undefined)
      throw new StatesError('ExecutionDoesNotExist', `Execution Does Not Exist: '${arn}'`);
    return record;
  }

  private forgetEnded(): void {
    for (const arn of this.running.keys()) {
      if (this.log.get(arn)?.status !== 'RUNNING') this.running.delete(arn);
    }
  }
}

function checkName(name: string): string {
  if (name.length < 1 || name.length > 80 || FORBIDDEN_IN_NAME.test(name)) {
    throw new StatesError('InvalidName', `Invalid Name: '${name}'`);
  }
  return name;
}

function checkInput(input: string): void {
  if (Buffer.byteLength(input) > MAX_PAYLOAD_BYTES) {
    throw new StatesError(
      'ValidationException',
      `1 validation error detected: Value at 'input' failed to satisfy constraint: Member must have length less than or equal to ${String(MAX_PAYLOAD_BYTES)}`,
    );
  }
  try {
    JSON.parse(input);
  } catch (cause) {
    throw new StatesError(
      'InvalidExecutionInput',
      `Invalid State Machine Execution Input: '${String(cause)}'`,
    );
  }
}

function pageSize(maxResults: number | undefined): number {
  return maxResults === undefined || maxResults === 0 ? DEFAULT_PAGE : maxResults;
}

function readToken(token: string | undefined): number {
  if (token === undefined) return 0;
  const value = Number(Buffer.from(token, 'base64url').toString('utf8'));
  if (!Number.isSafeInteger(value) || value < 1) throw new StatesError('InvalidToken', 'Invalid Token');
  return value;
}

function writeToken(value: number): string {
  return Buffer.from(String(value)).toString('base64url');
}

const DATA_FIELDS = new Set(['input', 'output', 'cause', 'error', 'parameters']);

/** The event without what passed through it. */
function withoutData(event: Output): Output {
  return Object.fromEntries(
    Object.entries(event).map(([key, value]) => [
      key,
      typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).filter(([field]) => !DATA_FIELDS.has(field)))
        : value,
    ]),
  );
}

function summary(record: ExecutionRecord): Output {
  const { executionArn, stateMachineArn, name, status, startMs, stopMs } = record;
  return {
    executionArn,
    stateMachineArn,
    name,
    status,
    startDate: startMs / 1000,
    ...(stopMs === undefined ? {} : { stopDate: stopMs / 1000 }),
    redriveCount: 0,
  };
}

function describe(record: ExecutionRecord): Output {
  return {
    ...summary(record),
    redriveStatus: 'NOT_REDRIVABLE',
    redriveStatusReason: 'Executions are not redriven locally.',
    input: record.input,
    inputDetails: { included: true },
    ...(record.output === undefined ? {} : { output: record.output, outputDetails: { included: true } }),
    ...record.failure,
  };
}

function describeMachine({ source, creationMs, deps }: Machine): Output {
  return {
    stateMachineArn: source.arn,
    name: source.name,
    status: 'ACTIVE',
    type: source.type,
    definition: JSON.stringify(source.definition),
    roleArn: deps.roleArn,
    creationDate: creationMs / 1000,
    loggingConfiguration: { level: 'OFF', includeExecutionData: false },
  };
}
