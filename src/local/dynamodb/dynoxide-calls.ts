import { type EngineAnswer, errorAnswer } from './engine.ts';
import { parseObject, type RequestDocument } from './request-document.ts';

/** A call of one of Dynoxide's tools. */
export interface ToolCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** What a tool answers: `text` is a document of DynamoDB, or says what went wrong. */
export interface ToolResult {
  readonly isError: boolean;
  readonly text: string;
}

/** Tools by the operations of DynamoDB that they perform. */
const TOOLS: ReadonlyMap<string, string> = new Map([
  ['BatchGetItem', 'batch_get_item'],
  ['BatchWriteItem', 'batch_write_item'],
  ['CreateTable', 'create_table'],
  ['DeleteItem', 'delete_item'],
  ['DeleteTable', 'delete_table'],
  ['DescribeTable', 'describe_table'],
  ['DescribeTimeToLive', 'describe_time_to_live'],
  ['GetItem', 'get_item'],
  ['ListTables', 'list_tables'],
  ['PutItem', 'put_item'],
  ['Query', 'query'],
  ['Scan', 'scan'],
  ['TransactGetItems', 'transact_get_items'],
  ['TransactWriteItems', 'transact_write_items'],
  ['UpdateItem', 'update_item'],
  ['UpdateTimeToLive', 'update_time_to_live'],
]);

/**
 * Parameters that change nothing here: every read sees all writes before it, capacity is neither counted nor
 * limited, and nothing costs anything.
 */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  'ConsistentRead',
  'ReturnConsumedCapacity',
  'ReturnItemCollectionMetrics',
  'TableClass',
  'Tags',
]);

/** Those of DynamoDB that no tool has; left out in silence they would change what a request means. */
const UNSERVED: ReadonlySet<string> = new Set([
  'AttributesToGet',
  'AttributeUpdates',
  'ConditionalOperator',
  'Expected',
  'KeyConditions',
  'QueryFilter',
  'ScanFilter',
]);

/** A high or low surrogate by itself, as JSON.stringify writes it: no parser but JavaScript's takes it. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** The call that performs an operation, or why there is none. */
export function toolCall(operation: string, document: RequestDocument): ToolCall | EngineAnswer {
  const tool = TOOLS.get(operation);
  if (tool === undefined) return errorAnswer('UnknownOperationException', '');
  const renamed: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(document)) {
    if (WITHOUT_EFFECT.has(name)) continue;
    if (UNSERVED.has(name)) {
      return errorAnswer('ValidationException', `${name} is not served here: use expressions instead`);
    }
    renamed[snakeCase(name)] = value;
  }
  return { tool, arguments: renamed };
}

/** One line of JSON-RPC, or the refusal of what cannot be put into one. */
export function encodeCall(id: number, call: ToolCall): string | EngineAnswer {
  const { tool: name } = call;
  const params = { name, arguments: call.arguments };
  const line = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
  return LONE_SURROGATE.test(line) ? errorAnswer('SerializationException', '') : `${line}\n`;
}

/** A tool's result as DynamoDB would put it. */
export function answerOf(result: ToolResult): EngineAnswer {
  if (!result.isError) return { status: 200, body: result.text };
  const error = parseObject(result.text);
  const name = error?.['error_type'];
  const message = error?.['message'];
  // Not in that form are complaints about parameters, such as one that is missing.
  if (typeof name !== 'string') return errorAnswer('ValidationException', result.text);
  const said = typeof message === 'string' ? message : '';
  return errorAnswer(name, said, name === 'TransactionCanceledException' ? reasonsIn(said) : {});
}

/** The message ends in the codes, one for each item: `[None, ConditionalCheckFailed]`. */
function reasonsIn(message: string): object {
  const codes = /\[([^\]]*)\]$/.exec(message)?.[1]?.split(',') ?? [];
  return { CancellationReasons: codes.map((code) => ({ Code: code.trim() })) };
}

/** `TableName` as `table_name`. */
const snakeCase = (name: string): string =>
  name.replaceAll(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
