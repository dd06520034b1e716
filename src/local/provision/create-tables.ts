import { z } from 'zod';
import type { LocalTable } from './deployment.ts';
import { ProvisionError } from './provision-error.ts';

const CREATE_LIMIT_MS = 10_000;

const errorSchema = z.looseObject({
  __type: z.string(),
  message: z.string().optional(),
  Message: z.string().optional(),
});

/**
 * Creates the tables; one that is there already stays as it is, with its data.
 *
 * @throws ProvisionError with the database's own words where it refuses a table.
 */
export async function createTables(
  endpoint: string,
  region: string,
  tables: readonly LocalTable[],
): Promise<void> {
  await Promise.all(tables.map((table) => createTable(endpoint, region, table)));
}

async function createTable(endpoint: string, region: string, table: LocalTable): Promise<void> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': 'DynamoDB_20120810.CreateTable',
      'x-amz-date': '20200101T000000Z',
      // The database wants a header of this shape and does not check it; the SDK would take longer to load.
      authorization:
        `AWS4-HMAC-SHA256 Credential=local/20200101/${region}/dynamodb/aws4_request, ` +
        'SignedHeaders=host;x-amz-date, Signature=0',
    },
    body: JSON.stringify(table.createTable),
    signal: AbortSignal.timeout(CREATE_LIMIT_MS),
  });
  if (response.ok) return;
  const parsed = errorSchema.safeParse(await response.json());
  const type = parsed.data?.__type ?? '';
  if (type.endsWith('ResourceInUseException')) return;
  throw new ProvisionError(
    `table ${table.name}: ${type}: ${parsed.data?.message ?? parsed.data?.Message ?? 'refused'}`,
  );
}
