import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { CreateTableCommand, type CreateTableCommandInput, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { countDynamo, type CountRequests } from '../../src/adapters/aws/count-requests.ts';
import { synthesized } from '../cdk/synthesized.ts';

type Document = Record<string, unknown>;
type Action = (
  store: object,
  data: Document,
  done: (
    error: (Error & { statusCode?: number; body?: unknown }) | null | undefined,
    answer?: unknown,
  ) => void,
) => void;
interface Validation {
  readonly types: object;
  readonly validations?: unknown;
  readonly custom: unknown;
}
interface Validations {
  checkTypes(data: Document, types: object): Document;
  checkValidations(data: Document, validations: unknown, custom: unknown, store: object): void;
}

const load = createRequire(import.meta.url);
const validations = load('dynalite/validations') as Validations;
const { create } = load('dynalite/db') as { create: (options: { createTableMs: number }) => object };

interface WireRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

/** One request that the database served: what was done, the partition and range key, and the units that it took. */
export interface ServedRequest {
  readonly operation: string;
  readonly key: string;
  readonly writeUnits: number;
  readonly readUnits: number;
}

/**
 * DynamoDB in this process: Dynalite's own code, which counts units as DynamoDB does, behind AWS's client without a
 * network between them. `inFlight` tells how many requests have not been answered.
 */
export class InProcessDynamo {
  readonly tableName = 'outrider';
  readonly documents: DynamoDBDocumentClient;
  inFlight = 0;
  private readonly store = create({ createTableMs: 0 });
  private readonly actions = new Map<string, { run: Action; validation: Validation }>();
  private readonly onServed: (request: ServedRequest) => void;

  constructor(count: CountRequests, onServed: (request: ServedRequest) => void = () => undefined) {
    this.onServed = onServed;
    const client = new DynamoDBClient({
      region: 'us-east-1',
      credentials: { accessKeyId: 'here', secretAccessKey: 'here' },
      requestHandler: { handle: (request: WireRequest) => this.handle(request) } as never,
    });
    this.documents = DynamoDBDocumentClient.from(countDynamo(client, count), {
      marshallOptions: { removeUndefinedValues: true },
    });
  }

  /** Makes the table as the template has it. */
  async createTable(): Promise<void> {
    const [table] = synthesized().resources('AWS::DynamoDB::Table');
    if (table === undefined) throw new Error('the template has no table');
    const { KeySchema, AttributeDefinitions, LocalSecondaryIndexes, GlobalSecondaryIndexes } =
      table.properties;
    const input = {
      TableName: this.tableName,
      BillingMode: 'PAY_PER_REQUEST',
      KeySchema,
      AttributeDefinitions,
      LocalSecondaryIndexes,
      GlobalSecondaryIndexes,
    } as CreateTableCommandInput;
    await this.documents.send(new CreateTableCommand(input) as never);
    // Dynalite makes a table active in a timer of its own.
    await new Promise((resolve) => setTimeout(resolve, 50));
  }

  private async handle(request: WireRequest): Promise<{ response: object }> {
    this.inFlight += 1;
    try {
      const operation = (request.headers['x-amz-target'] ?? '').split('.')[1] ?? '';
      const body =
        request.body instanceof Uint8Array ? new TextDecoder().decode(request.body) : String(request.body);
      const document = JSON.parse(body) as Document;
      return { response: await this.serve(operation, document) };
    } finally {
      this.inFlight -= 1;
    }
  }

  private serve(operation: string, document: Document): Promise<object> {
    const { run, validation } = this.actionOf(lowerFirst(operation));
    return new Promise((resolve) => {
      try {
        const data = validations.checkTypes(document, validation.types);
        validations.checkValidations(data, validation.validations, validation.custom, this.store);
        run(this.store, data, (error, answer) => {
          if (error === null || error === undefined) {
            this.note(operation, document, answer);
            resolve(respond(200, answer));
          } else {
            this.note(operation, document, undefined);
            resolve(respond(error.statusCode ?? 500, error.body ?? { message: error.message }));
          }
        });
      } catch (error) {
        const known = error as { statusCode?: number; body?: unknown; message?: string };
        resolve(respond(known.statusCode ?? 500, known.body ?? { message: known.message }));
      }
    });
  }

  private actionOf(name: string): { run: Action; validation: Validation } {
    const there = this.actions.get(name);
    if (there !== undefined) return there;
    const action = {
      run: load(`dynalite/actions/${name}`) as Action,
      validation: load(`dynalite/validations/${name}`) as Validation,
    };
    this.actions.set(name, action);
    return action;
  }

  private note(operation: string, document: Document, answer: unknown): void {
    const consumed = (answer as { ConsumedCapacity?: unknown } | undefined)?.ConsumedCapacity;
    const tables = (Array.isArray(consumed) ? consumed : [consumed]) as (
      { CapacityUnits?: number } | undefined
    )[];
    const units = tables.reduce((sum, table) => sum + (table?.CapacityUnits ?? 0), 0);
    const isWrite = /^(Put|Update|Delete)/.test(operation);
    this.onServed({
      operation: answer === undefined ? `${operation} refused` : operation,
      key: keyOf(document),
      writeUnits: isWrite ? (answer === undefined ? 1 : units) : 0,
      readUnits: isWrite ? 0 : units,
    });
  }
}

const respond = (statusCode: number, body: unknown): object => ({
  statusCode,
  headers: { 'content-type': 'application/x-amz-json-1.0' },
  body: Readable.from([Buffer.from(JSON.stringify(body))]),
});

/** What kind of item a request is about: its keys without ids and numbers. */
function keyOf(document: Document): string {
  const text = (value: unknown): string => (value as { S?: string } | undefined)?.S ?? '';
  const key = (document['Key'] ?? document['Item']) as Record<string, unknown> | undefined;
  const values = document['ExpressionAttributeValues'] as Record<string, unknown> | undefined;
  if (key !== undefined) return `${kindOf(text(key['pk']))}/${kindOf(text(key['sk']))}`;
  if (values !== undefined) return `${kindOf(text(values[':pk'] ?? values[':listing']))} …`;
  const tables = document['RequestItems'] as Record<string, { Keys?: Record<string, unknown>[] }> | undefined;
  const first = Object.values(tables ?? {})[0]?.Keys?.[0];
  return first === undefined ? '' : `${kindOf(text(first['pk']))}/${kindOf(text(first['sk']))} batch`;
}

const kindOf = (text: string): string => (text.split('#')[0] ?? '').replace(/\d+/g, 'n');
