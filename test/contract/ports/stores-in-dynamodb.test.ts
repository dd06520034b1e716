import { describe } from 'vitest';
import type { DynamoDbEngine } from '../../../src/local/dynamodb/process.ts';
import { describeDynamoStores } from './dynamodb-suites.ts';
import { startTables } from './servers.ts';

const hasDynoxide = process.platform === 'linux' && process.arch === 'x64';
const engines: readonly DynamoDbEngine[] = hasDynoxide ? ['dynoxide', 'dynalite'] : ['dynalite'];

describe.each(engines)('over %s', (engine) => {
  describeDynamoStores(() => startTables(engine));
});
