/** Runs a query by DuckDB with so many threads: `duckdb-query.ts <threads> <query>`. */
import { DuckDBInstance } from '@duckdb/node-api';

const [threads = '2', query = ''] = process.argv.slice(2);
const instance = await DuckDBInstance.create(':memory:', { threads });
const connection = await instance.connect();
await connection.run(query);
