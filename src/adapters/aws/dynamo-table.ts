import {
  BatchGetCommand,
  DeleteCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { TableSchema } from '../../contracts/settings.ts';
import { backoff } from './backoff.ts';
import { faultOf, translateDynamoFault } from './faults.ts';
import { type AccessDeniedError, StoreUnavailableError } from '../../contracts/errors.ts';
import { denialOf } from './denials.ts';

/** An item as the document client gives it. */
export type Item = Readonly<Record<string, unknown>>;

/** Primary key of an item. */
export interface ItemKey {
  readonly pk: string;
  readonly sk: string;
}

/** A condition expression. `#name` stands for the attribute `name` unless `names` says otherwise. */
export interface Condition {
  readonly when: string;
  readonly values?: Item;
  readonly names?: Readonly<Record<string, string>>;
}

/** A change of one item; without a condition it is made in any case, and makes the item where it is not there. */
export interface Change extends Partial<Condition> {
  /** Attributes to set, by name. */
  readonly set?: Item;
  /** Further clauses of an update expression, whole: `ADD #epoch :one`. */
  readonly clauses?: string;
}

/** A page or a range of one partition. */
export interface RangeQuery {
  readonly keys: string;
  readonly values: Item;
  readonly index?: string;
  /** Indexes that span partitions have no consistent reads. */
  readonly isConsistent: boolean;
}

/** What each operation is called in policies. */
const actionOf = new Map([
  ['read', 'dynamodb:GetItem'],
  ['write', 'dynamodb:PutItem'],
  ['update', 'dynamodb:UpdateItem'],
  ['remove', 'dynamodb:DeleteItem'],
  ['query', 'dynamodb:Query'],
  ['batch read', 'dynamodb:BatchGetItem'],
]);
const PAGE_LIMIT = 100_000;
/** Most keys of one batch of reads. */
export const BATCH_KEYS = 100;
const BATCH_ATTEMPTS = 8;

/**
 * The table that all stores share, reduced to what DynamoDB and both of its local stand-ins do alike:
 * conditional writes of single items, consistent reads, queries and batches of reads. A refused condition is an
 * outcome; any other error is translated here, once.
 */
export class DynamoTable {
  private readonly client: DynamoDBDocumentClient;
  private readonly tableName: string;

  constructor(client: DynamoDBDocumentClient, tableName: string) {
    this.client = client;
    this.tableName = tableName;
  }

  /** A read, consistent unless told otherwise; undefined where there is no such item. */
  async get(key: ItemKey, { isConsistent = true } = {}): Promise<Item | undefined> {
    const answer = await this.call('read', key, () =>
      this.client.send(new GetCommand({ TableName: this.tableName, Key: key, ConsistentRead: isConsistent })),
    );
    return answer.Item;
  }

  /** Writes a whole item if nothing has its key, or where a condition is said, also in the place of one that meets it. */
  async putNew(item: ItemKey & Item, inPlaceOf?: Condition): Promise<'written' | 'refused'> {
    const { pk, sk } = item;
    const isNew = 'attribute_not_exists(#pk)';
    const when = inPlaceOf === undefined ? isNew : `${isNew} OR ${inPlaceOf.when}`;
    const answer = await this.conditional('write', { pk, sk }, () =>
      this.client.send(
        new PutCommand({
          TableName: this.tableName,
          Item: item,
          ConditionExpression: when,
          ExpressionAttributeNames: namesIn(when, { pk: TableSchema.partitionKey, ...inPlaceOf?.names }),
          ...(inPlaceOf === undefined ? {} : { ExpressionAttributeValues: valuesOf(inPlaceOf.values ?? {}) }),
        }),
      ),
    );
    return answer === 'refused' ? 'refused' : 'written';
  }

  /** Changes an item if the condition holds; answers the item as it is then. */
  async update(key: ItemKey, change: Change): Promise<Item | 'refused'> {
    const set = Object.entries(change.set ?? {});
    const assignments = set.map(([name]) => `#${name} = :set_${name}`).join(', ');
    const expression = [assignments === '' ? '' : `SET ${assignments}`, change.clauses ?? '']
      .join(' ')
      .trim();
    const values = {
      ...change.values,
      ...Object.fromEntries(set.map(([name, value]) => [`set_${name}`, value])),
    };
    const answer = await this.conditional('update', key, () =>
      this.client.send(
        new UpdateCommand({
          TableName: this.tableName,
          Key: key,
          UpdateExpression: expression,
          ...(change.when === undefined ? {} : { ConditionExpression: change.when }),
          ExpressionAttributeNames: namesIn(`${expression} ${change.when ?? ''}`, change.names),
          ExpressionAttributeValues: valuesOf(values),
          ReturnValues: 'ALL_NEW',
        }),
      ),
    );
    return answer === 'refused' ? 'refused' : (answer.Attributes ?? {});
  }

  /** Removes an item, where there is a condition only if it holds; an item that is not there is gone already. */
  async remove(key: ItemKey, condition?: Condition): Promise<'removed' | 'refused'> {
    const answer = await this.conditional('remove', key, () =>
      this.client.send(
        new DeleteCommand({
          TableName: this.tableName,
          Key: key,
          ...(condition === undefined
            ? {}
            : {
                ConditionExpression: condition.when,
                ExpressionAttributeNames: namesIn(condition.when, condition.names),
                ExpressionAttributeValues: valuesOf(condition.values ?? {}),
              }),
        }),
      ),
    );
    return answer === 'refused' ? 'refused' : 'removed';
  }

  /** All items of a range, page by page, in ascending order of the range key. */
  async *query(query: RangeQuery): AsyncGenerator<Item> {
    let start: Item | undefined;
    for (let page = 0; page < PAGE_LIMIT; page++) {
      const { items, next } = await this.page(query, { start });
      yield* items;
      if (next === undefined) return;
      start = next;
    }
    throw new StoreUnavailableError('a query did not end', { pages: PAGE_LIMIT });
  }

  /** One page of a range; `next` goes into `start` for the page after it. */
  async page(
    query: RangeQuery,
    options: { start: Item | undefined; limit?: number; isDescending?: boolean },
  ): Promise<{ items: readonly Item[]; next: Item | undefined }> {
    const answer = await this.call('query', { keys: query.keys }, () =>
      this.client.send(
        new QueryCommand({
          TableName: this.tableName,
          IndexName: query.index,
          KeyConditionExpression: query.keys,
          ExpressionAttributeNames: namesIn(query.keys),
          ExpressionAttributeValues: valuesOf(query.values),
          ConsistentRead: query.isConsistent,
          ScanIndexForward: options.isDescending !== true,
          Limit: options.limit,
          ExclusiveStartKey: options.start,
        }),
      ),
    );
    return { items: answer.Items ?? [], next: answer.LastEvaluatedKey };
  }

  /** The items of up to 100 keys, in no order; those that are not there are left out. Consistent unless told otherwise. */
  async batchGet(keys: readonly ItemKey[], { isConsistent = true } = {}): Promise<readonly Item[]> {
    const found: Item[] = [];
    let missing: readonly Item[] = keys.slice(0, BATCH_KEYS).map(({ pk, sk }) => ({ pk, sk }));
    for (let attempt = 0; missing.length > 0; attempt++) {
      if (attempt === BATCH_ATTEMPTS)
        throw new StoreUnavailableError('a batch read did not end', { attempt });
      if (attempt > 0) await backoff(attempt);
      const request = { [this.tableName]: { Keys: [...missing], ConsistentRead: isConsistent } };
      const answer = await this.call('batch read', { keys: missing.length }, () =>
        this.client.send(new BatchGetCommand({ RequestItems: request })),
      );
      found.push(...(answer.Responses?.[this.tableName] ?? []));
      missing = answer.UnprocessedKeys?.[this.tableName]?.Keys ?? [];
    }
    return found;
  }

  private async conditional<T>(
    operation: string,
    key: ItemKey,
    send: () => Promise<T>,
  ): Promise<T | 'refused'> {
    try {
      return await send();
    } catch (cause) {
      if (faultOf(cause).name === 'ConditionalCheckFailedException') return 'refused';
      throw this.denial(cause, operation) ?? translateDynamoFault(cause, operation, { ...key });
    }
  }

  private async call<T>(operation: string, details: object, send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (cause) {
      throw this.denial(cause, operation) ?? translateDynamoFault(cause, operation, { ...details });
    }
  }

  private denial(cause: unknown, operation: string): AccessDeniedError | undefined {
    const action = actionOf.get(operation) ?? 'dynamodb:*';
    return denialOf(cause, { action, resource: `table ${this.tableName}` });
  }
}

/** Every name goes through a placeholder: about 570 words are reserved, `state` and `name` among them. */
function namesIn(expression: string, given: Readonly<Record<string, string>> = {}): Record<string, string> {
  const names = expression.match(/#\w+/g) ?? [];
  return Object.fromEntries(names.map((name) => [name, given[name.slice(1)] ?? name.slice(1)]));
}

/** DynamoDB refuses an empty map of values. */
function valuesOf(values: Item): Record<string, unknown> | undefined {
  const entries = Object.entries(values).map(([name, value]) => [`:${name}`, value] as const);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
