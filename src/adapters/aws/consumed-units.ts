import type { RequestTally } from '../../contracts/requests.ts';
import { faultOf } from './faults.ts';
import type { TryOutcome } from './count-requests.ts';

const WRITE_BYTES = 1_024;
const READ_BYTES = 4_096;

type Document = Readonly<Record<string, unknown>>;
const isDocument = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Operations that write, each of one item. */
const writes = new Set(['PutItem', 'UpdateItem', 'DeleteItem']);

/**
 * The units that a try of DynamoDB has consumed, as DynamoDB told; where it did not, by the sizes of the items as it
 * would count them. A write that its condition refused costs at least one; a try that was throttled costs nothing.
 */
export function consumedUnits(operation: string, outcome: TryOutcome, input: Document): RequestTally {
  const isWrite = writes.has(operation);
  if (outcome.kind === 'failed') {
    const isRefused = faultOf(outcome.error).name === 'ConditionalCheckFailedException';
    return isRefused && isWrite ? { writeUnits: 1 } : {};
  }
  const output = isDocument(outcome.output) ? outcome.output : {};
  const units = toldUnits(output['ConsumedCapacity']) ?? unitsBySize(operation, output, input);
  return isWrite ? { writeUnits: units } : { readUnits: units };
}

/** `ConsumedCapacity` of one table, or of a batch a list of them. */
function toldUnits(told: unknown): number | undefined {
  const tables = Array.isArray(told) ? (told as readonly unknown[]) : told === undefined ? [] : [told];
  let sum: number | undefined;
  for (const table of tables) {
    const units = isDocument(table) ? table['CapacityUnits'] : undefined;
    if (typeof units === 'number' && Number.isFinite(units)) sum = (sum ?? 0) + units;
  }
  return sum;
}

const unitsOf = (bytes: number, perUnit: number): number => Math.max(1, Math.ceil(bytes / perUnit));

function unitsBySize(operation: string, output: Document, input: Document): number {
  const consistency = input['ConsistentRead'] === false ? 0.5 : 1;
  switch (operation) {
    case 'PutItem':
      return unitsOf(itemBytes(input['Item']), WRITE_BYTES);
    case 'UpdateItem':
      return unitsOf(itemBytes(output['Attributes']), WRITE_BYTES);
    case 'Query':
      return unitsOf(
        listOf(output['Items']).reduce((sum: number, item) => sum + itemBytes(item), 0),
        READ_BYTES,
      );
    case 'BatchGetItem':
      return Object.values(isDocument(output['Responses']) ? output['Responses'] : {})
        .flatMap(listOf)
        .reduce((sum: number, item) => sum + unitsOf(itemBytes(item), READ_BYTES), 0);
    case 'GetItem':
      return unitsOf(itemBytes(output['Item']), READ_BYTES) * consistency;
    default:
      return 1;
  }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const bytesOf = (text: string): number => Buffer.byteLength(text);

/** The size of an item as DynamoDB counts it: names and values, whether typed (`{ S: … }`) or as the document client has them. */
function itemBytes(item: unknown): number {
  if (!isDocument(item)) return 0;
  return Object.entries(item).reduce((sum, [name, value]) => sum + bytesOf(name) + valueBytes(value), 0);
}

const typeNames = new Set(['S', 'N', 'B', 'M', 'L', 'BOOL', 'NULL']);

function valueBytes(value: unknown): number {
  if (typeof value === 'string') return bytesOf(value);
  if (typeof value === 'number') return numberBytes(String(value));
  if (value instanceof Uint8Array) return value.byteLength;
  if (Array.isArray(value)) return 3 + value.reduce((sum: number, each) => sum + 1 + valueBytes(each), 0);
  if (!isDocument(value)) return 1;
  const [[type, held] = ['', undefined], ...others] = Object.entries(value);
  if (others.length === 0 && typeNames.has(type))
    return type === 'N' ? numberBytes(String(held)) : valueBytes(held);
  return 3 + itemBytes(value) + others.length + 1;
}

/** Two digits a byte, and one more. */
const numberBytes = (text: string): number => Math.ceil(text.replace(/[^0-9]/g, '').length / 2) + 1;
