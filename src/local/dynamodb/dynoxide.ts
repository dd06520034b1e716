import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import { LineSplitter } from '../line-splitter.ts';
import { type PipedProcess, startPiped } from './child-process.ts';
import { answerOf, encodeCall, toolCall, type ToolCall, type ToolResult } from './dynoxide-calls.ts';
import { readDocument } from './request-document.ts';
import { DynamoDbUnavailableError, type Engine, type EngineAnswer, errorAnswer } from './engine.ts';

const READY_LIMIT_MS = 15_000;
/** Far above the longest operation; only a line that the process did not understand meets it. */
const ANSWER_LIMIT_MS = 60_000;
const MAX_WAITING = 4_096;

const answerSchema = z.object({
  id: z.number(),
  result: z
    .looseObject({
      content: z.array(z.looseObject({ text: z.string().optional() })).optional(),
      isError: z.boolean().optional(),
    })
    .optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});
type RpcAnswer = z.output<typeof answerSchema>;

const descriptionSchema = z.looseObject({
  billing_mode: z.string().optional(),
  status: z.string(),
  item_count: z.number(),
});
const keyName = z.looseObject({ name: z.string() });
const keysSchema = z.looseObject({ partition_key: keyName, sort_key: keyName.nullable() });
const updatedSchema = z.looseObject({ TableDescription: z.looseObject({}) });

const require = createRequire(import.meta.url);

/** Where the program is, or undefined where its package is not installed or not for this platform. */
export function dynoxideBinary(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  try {
    return join(dirname(require.resolve('@dynoxide/linux-x64/package.json')), 'dynoxide');
  } catch {
    return undefined; // An optional dependency: its absence is no error.
  }
}

/**
 * Starts Dynoxide over a file in `dir`. Its HTTP server checks no signature and answers any origin, and it has no
 * other address than a port; but it also offers all operations as tools over its standard streams, which nobody
 * but this process holds.
 *
 * @throws DynamoDbUnavailableError if it is not installed, or does not answer within 15 s.
 */
export async function startDynoxide(dir: string): Promise<Engine> {
  const binary = dynoxideBinary();
  if (binary === undefined) throw new DynamoDbUnavailableError('dynoxide is not installed for this platform');
  const command = [binary, 'mcp', '--db-path', join(dir, 'dynamodb.sqlite')];
  const piped = startPiped(command, ['pipe', 'pipe', 'pipe']);
  const engine = new Dynoxide(piped);
  const isReady = await Promise.race([
    engine.initialize().then(() => true),
    piped.exited.then(() => false),
    delay(READY_LIMIT_MS, false, { ref: false }),
  ]).catch(() => false);
  if (isReady) return engine;
  await engine.close();
  throw new DynamoDbUnavailableError(`dynoxide did not start: ${piped.log()}`);
}

interface Waiting {
  readonly settle: (answer: RpcAnswer | undefined) => void;
  readonly timer: NodeJS.Timeout;
}

class Dynoxide implements Engine {
  readonly pid: number;
  readonly exited: Promise<void>;
  private readonly piped: PipedProcess;
  private readonly waiting = new Map<number, Waiting>();
  private lastId = 0;
  private isGone = false;

  constructor(piped: PipedProcess) {
    this.piped = piped;
    this.pid = piped.pid;
    this.exited = piped.exited;
    if (piped.child.stdout !== null) {
      readLines(piped.child.stdout, (line) => {
        this.take(line);
      });
    }
    void piped.exited.then(() => {
      this.isGone = true;
      for (const id of [...this.waiting.keys()]) this.settle(id, undefined);
    });
  }

  async initialize(): Promise<void> {
    const clientInfo = { name: 'outrider', version: '1' };
    const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo };
    await this.ask((id) => `${JSON.stringify({ jsonrpc: '2.0', id, method: 'initialize', params })}\n`);
    this.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
    await this.call({ tool: 'list_tables', arguments: {} });
  }

  async perform(operation: string, body: Buffer): Promise<EngineAnswer> {
    const read = readDocument(body);
    if ('status' in read) return read;
    const call = toolCall(operation, read.document);
    if ('status' in call) return call;
    if (operation === 'DescribeTable') return this.describeTable(call);
    const answer = await this.answer(call);
    if (answer.status === 400 && call.arguments['return_values_on_condition_check_failure'] === 'ALL_OLD') {
      return this.withItem(call, answer);
    }
    return answer;
  }

  close(): Promise<void> {
    return this.piped.close();
  }

  private async answer(call: ToolCall): Promise<EngineAnswer> {
    const result = await this.call(call);
    return 'status' in result ? result : answerOf(result);
  }

  /** The tool tells a summary; a table whose mode is set to what it is answers with its whole description. */
  private async describeTable(call: ToolCall): Promise<EngineAnswer> {
    const summary = await this.answer(call);
    if (summary.status !== 200) return summary;
    const { billing_mode, status, item_count } = descriptionSchema.parse(JSON.parse(summary.body));
    const table_name = call.arguments['table_name'];
    const again = await this.answer({ tool: 'update_table', arguments: { table_name, billing_mode } });
    if (again.status !== 200) return again;
    const { TableDescription } = updatedSchema.parse(JSON.parse(again.body));
    const Table = { ...TableDescription, TableStatus: status, ItemCount: item_count };
    return { status: 200, body: JSON.stringify({ Table }) };
  }

  /** The tool does not tell which item failed its condition: it is read right after, so it may be a later one. */
  private async withItem(call: ToolCall, answer: EngineAnswer): Promise<EngineAnswer> {
    if (!answer.body.includes('ConditionalCheckFailedException')) return answer;
    const { table_name, key: given, item } = call.arguments;
    const key = given ?? (await this.keyOf(table_name, item));
    const read = await this.answer({ tool: 'get_item', arguments: { table_name, key } });
    const error: unknown = JSON.parse(answer.body);
    const found: unknown = JSON.parse(read.body);
    if (read.status !== 200 || typeof error !== 'object' || typeof found !== 'object') return answer;
    return { status: 400, body: JSON.stringify({ ...error, ...found }) };
  }

  /** Of an item that was to be put. */
  private async keyOf(table_name: unknown, item: unknown): Promise<object> {
    const summary = await this.answer({ tool: 'describe_table', arguments: { table_name } });
    const { partition_key, sort_key } = keysSchema.parse(JSON.parse(summary.body));
    const names = [partition_key.name, ...(sort_key === null ? [] : [sort_key.name])];
    const values = new Map(Object.entries(z.looseObject({}).parse(item)));
    return Object.fromEntries(names.map((name) => [name, values.get(name)]));
  }

  private async call(call: ToolCall): Promise<ToolResult | EngineAnswer> {
    if (this.waiting.size >= MAX_WAITING)
      return errorAnswer('ThrottlingException', 'Too many requests at once');
    const answer = await this.ask((id) => encodeCall(id, call));
    if (answer === undefined) return errorAnswer('InternalServerError', 'The database does not answer');
    if ('status' in answer) return answer;
    if (answer.error !== undefined) return errorAnswer('ValidationException', answer.error.message);
    const { content = [], isError = false } = answer.result ?? {};
    return { isError, text: content[0]?.text ?? '{}' };
  }

  /** Undefined where no answer comes. */
  private ask(encode: (id: number) => string | EngineAnswer): Promise<RpcAnswer | EngineAnswer | undefined> {
    const id = ++this.lastId;
    const line = encode(id);
    if (typeof line !== 'string') return Promise.resolve(line);
    if (this.isGone) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.settle(id, undefined);
      }, ANSWER_LIMIT_MS);
      timer.unref();
      this.waiting.set(id, { settle: resolve, timer });
      this.write(line);
    });
  }

  private write(line: string): void {
    this.piped.child.stdin?.write(line);
  }

  private take(line: string): void {
    const answer = answerSchema.safeParse(JSON.parse(line));
    if (answer.success) this.settle(answer.data.id, answer.data);
  }

  private settle(id: number, answer: RpcAnswer | undefined): void {
    const waiting = this.waiting.get(id);
    if (waiting === undefined) return;
    this.waiting.delete(id);
    clearTimeout(waiting.timer);
    waiting.settle(answer);
  }
}

function readLines(stream: Readable, onLine: (line: string) => void): void {
  const lines = new LineSplitter();
  stream.on('data', (chunk: Buffer) => {
    for (const line of lines.push(chunk)) if (line.length > 0) onLine(line.toString('utf8'));
  });
  stream.on('error', () => undefined); // It breaks with its process.
}
