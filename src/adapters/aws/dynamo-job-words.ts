import type { JobId } from '../../contracts/ids.ts';
import type { JobWords } from '../../ports/job-words.ts';
import { accessKey } from './access-item.ts';
import type { DynamoTable } from './dynamo-table.ts';

/** The words that schedulers keep for their jobs, see `StsJobAccess`. */
export class DynamoJobWords implements JobWords {
  private readonly table: DynamoTable;

  constructor(table: DynamoTable) {
    this.table = table;
  }

  async wordOf(jobId: JobId): Promise<string | undefined> {
    const word = (await this.table.get(accessKey(jobId)))?.['word'];
    return typeof word === 'string' ? word : undefined;
  }
}
