import type { DynamoDbProcess } from '../dynamodb/process.ts';
import type { LocalTable } from './deployment.ts';
import { ProvisionError } from './provision-error.ts';

/**
 * Creates the tables; one that is there already stays as it is, with its data.
 *
 * @throws ProvisionError with the database's own words where it refuses a table.
 */
export async function createTables(
  database: Pick<DynamoDbProcess, 'createTable'>,
  tables: readonly LocalTable[],
): Promise<void> {
  await Promise.all(
    tables.map(async ({ name, createTable }) => {
      const refusal = await database.createTable(createTable);
      if (refusal !== undefined) throw new ProvisionError(`table ${name}: ${refusal}`);
    }),
  );
}
