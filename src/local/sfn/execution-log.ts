import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { MAX_HISTORY_EVENTS, placeEvent } from './history.ts';
import type { Failure, HistoryEvent, NewEvent } from './history.ts';

export type EndStatus = 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'ABORTED';
export type ExecutionStatus = 'RUNNING' | EndStatus;

/** What is known of one execution; it changes as the execution goes on. */
export interface ExecutionRecord {
  readonly executionArn: string;
  readonly stateMachineArn: string;
  readonly name: string;
  /** JSON, as it was given. */
  readonly input: string;
  /** Milliseconds since the epoch. */
  readonly startMs: number;
  /** Grows by one with each execution of this log, also across restarts. */
  readonly sequence: number;
  readonly status: ExecutionStatus;
  readonly stopMs: number | undefined;
  /** JSON; of a success only. */
  readonly output: string | undefined;
  readonly failure: Failure;
  readonly events: readonly HistoryEvent[];
}

interface OwnRecord extends ExecutionRecord {
  status: ExecutionStatus;
  stopMs: number | undefined;
  output: string | undefined;
  failure: Failure;
  readonly events: HistoryEvent[];
}

/** How an execution ended, with the event that says so. */
export interface End {
  readonly status: EndStatus;
  readonly event: NewEvent;
  readonly output?: string;
  readonly failure?: Failure;
}

/** Beyond, the oldest ended executions are forgotten; AWS forgets them after 90 days. */
const MAX_KEPT_EXECUTIONS = 1_000;
const MAX_FILE_NAME_CHARS = 200;

const failureSchema = z.object({ error: z.string().exactOptional(), cause: z.string().exactOptional() });
const line = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('started'),
    executionArn: z.string(),
    stateMachineArn: z.string(),
    name: z.string(),
    input: z.string(),
    startMs: z.number(),
    sequence: z.number(),
  }),
  z.object({
    kind: z.literal('event'),
    event: z.looseObject({
      id: z.number(),
      previousEventId: z.number(),
      timestamp: z.number(),
      type: z.string(),
    }),
  }),
  z.object({
    kind: z.literal('ended'),
    status: z.enum(['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED']),
    stopMs: z.number(),
    output: z.string().optional(),
    failure: failureSchema,
  }),
]);

/**
 * The executions and their histories, in memory and, given a directory, as one file of JSON
 * lines per execution. Lines are appended before an answer goes out, so that what a client
 * was told survives the process. What cannot be written throws the file system's error, and is
 * not in memory either; a line may be torn then, so that nothing may follow it before the file is read anew.
 */
export class ExecutionLog {
  private readonly records = new Map<string, OwnRecord>();
  private readonly runDir: string | undefined;
  private readonly onStatus: (record: ExecutionRecord) => void;
  private nextSequence = 1;

  /**
   * Reads back what the directory holds. Executions that were running then are so still: who reads goes on with them.
   *
   * @param onStatus - told of each execution that begins or ends, once it is on record.
   */
  constructor(runDir: string | undefined, onStatus: (record: ExecutionRecord) => void = () => undefined) {
    this.onStatus = onStatus;
    this.runDir = runDir;
    if (runDir === undefined) return;
    mkdirSync(runDir, { recursive: true });
    const read = readdirSync(runDir)
      .filter((file) => file.endsWith('.jsonl'))
      .map((file) => readRecord(join(runDir, file)))
      .filter((record) => record !== undefined)
      .sort((a, b) => a.sequence - b.sequence);
    for (const record of read) {
      this.records.set(record.executionArn, record);
      this.nextSequence = record.sequence + 1;
    }
    this.forgetOldest();
  }

  get(executionArn: string): ExecutionRecord | undefined {
    return this.records.get(executionArn);
  }

  /** Those of one state machine, latest first. */
  list(stateMachineArn: string): ExecutionRecord[] {
    return [...this.records.values()]
      .filter((record) => record.stateMachineArn === stateMachineArn)
      .sort((a, b) => b.sequence - a.sequence);
  }

  /** Those that have not ended, oldest first. */
  running(): ExecutionRecord[] {
    return [...this.records.values()].filter(({ status }) => status === 'RUNNING');
  }

  /** A new execution, running, with an empty history. Its ARN must be new. */
  begin(
    start: Pick<ExecutionRecord, 'executionArn' | 'stateMachineArn' | 'name' | 'input'>,
  ): ExecutionRecord {
    const record: OwnRecord = {
      ...start,
      startMs: Date.now(),
      sequence: this.nextSequence++,
      status: 'RUNNING',
      stopMs: undefined,
      output: undefined,
      failure: {},
      events: [],
    };
    const { executionArn, stateMachineArn, name, input, startMs, sequence } = record;
    const started = { kind: 'started', executionArn, stateMachineArn, name, input, startMs, sequence };
    try {
      this.write(executionArn, [started]);
    } catch (error) {
      // Of a torn line nothing may stay: the same execution may be begun again.
      this.forgetFile(executionArn);
      throw error;
    }
    this.records.set(executionArn, record);
    this.forgetOldest();
    this.onStatus(record);
    return record;
  }

  /**
   * Adds an event to a running execution and answers its id. `full` if only the event that
   * ends the execution still has room; then nothing is added.
   */
  append(executionArn: string, event: NewEvent): number | 'full' {
    const record = this.runningOne(executionArn);
    if (record.events.length >= MAX_HISTORY_EVENTS - 1) return 'full';
    const placed = placeEvent(event, record.events.length, Date.now());
    this.write(executionArn, [{ kind: 'event', event: placed }]);
    record.events.push(placed);
    return placed.id;
  }

  /** Ends a running execution with its last event. */
  end(executionArn: string, end: End): void {
    const record = this.runningOne(executionArn);
    const { status, output, failure = {} } = end;
    const stopMs = Date.now();
    const placed = placeEvent(end.event, record.events.length, stopMs);
    this.write(executionArn, [
      { kind: 'event', event: placed },
      { kind: 'ended', status, stopMs, output, failure },
    ]);
    record.events.push(placed);
    Object.assign(record, { status, stopMs, output, failure });
    this.onStatus(record);
  }

  private runningOne(executionArn: string): OwnRecord {
    const record = this.records.get(executionArn);
    if (record?.status !== 'RUNNING') throw new Error(`${executionArn} is not running`);
    return record;
  }

  private forgetOldest(): void {
    if (this.records.size <= MAX_KEPT_EXECUTIONS) return;
    const oldest = [...this.records.values()].find(({ status }) => status !== 'RUNNING');
    if (oldest === undefined) return;
    this.records.delete(oldest.executionArn);
    this.forgetFile(oldest.executionArn);
  }

  private forgetFile(executionArn: string): void {
    if (this.runDir !== undefined) rmSync(this.fileOf(this.runDir, executionArn), { force: true });
  }

  /** Synchronous: a few lines a second, and the answer must not overtake them. */
  private write(executionArn: string, entries: readonly Readonly<Record<string, unknown>>[]): void {
    if (this.runDir === undefined) return;
    const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
    appendFileSync(this.fileOf(this.runDir, executionArn), lines);
  }

  private fileOf(runDir: string, executionArn: string): string {
    const readable = encodeURIComponent(executionArn.split(':').slice(6).join('.'));
    const name =
      readable.length <= MAX_FILE_NAME_CHARS
        ? readable
        : createHash('sha256').update(executionArn).digest('hex');
    return join(runDir, `${name}.jsonl`);
  }
}

/** `undefined` for a file without a whole first line: its execution was never acknowledged. */
function readRecord(file: string): OwnRecord | undefined {
  let record: OwnRecord | undefined;
  const content = readFileSync(file, 'utf8');
  // A line torn by a crash stays by itself: the next one must not go on where it ended.
  if (content !== '' && !content.endsWith('\n')) appendFileSync(file, '\n');
  for (const text of content.split('\n')) {
    const entry = parseLine(text);
    if (entry === undefined) continue; // The end of the file, or a line torn by a crash.
    if (entry.kind === 'started') {
      const { executionArn, stateMachineArn, name, input, startMs, sequence } = entry;
      const start = { executionArn, stateMachineArn, name, input, startMs, sequence };
      record = { ...start, status: 'RUNNING', stopMs: undefined, output: undefined, failure: {}, events: [] };
    } else if (entry.kind === 'event') {
      record?.events.push(entry.event);
    } else if (record !== undefined) {
      record.status = entry.status;
      record.stopMs = entry.stopMs;
      record.output = entry.output;
      record.failure = entry.failure;
    }
  }
  return record;
}

function parseLine(text: string): z.infer<typeof line> | undefined {
  if (text === '') return undefined;
  try {
    return line.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
