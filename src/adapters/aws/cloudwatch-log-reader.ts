import { type CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { NotFoundError, StoreUnavailableError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { isOfAnother } from '../../contracts/job-lines.ts';
import { epochMs } from '../../contracts/units.ts';
import type { LogLine, LogPage, LogRead, LogReader } from '../../ports/log-reader.ts';
import { denialOf } from './denials.ts';
import { faultOf } from './faults.ts';

/** CloudWatch may answer pages without lines while it searches. */
const PAGE_LIMIT = 1_000;
const LARGEST_PAGE = 10_000;

/** A job's lines in one CloudWatch log group. */
export class CloudWatchLogReader implements LogReader {
  private readonly client: CloudWatchLogsClient;
  private readonly logGroup: string;

  constructor(client: CloudWatchLogsClient, logGroup: string) {
    this.client = client;
    this.logGroup = logGroup;
  }

  async read(jobId: JobId, page: LogPage): Promise<LogRead> {
    const lines: LogLine[] = [];
    let nextToken: string | undefined;
    for (let pages = 0; pages < PAGE_LIMIT && lines.length < page.limit; pages++) {
      const answer = await this.page(jobId, page, nextToken);
      for (const { timestamp = 0, logStreamName = '', message = '' } of answer.events ?? []) {
        const line = { at: epochMs(timestamp), source: logStreamName, text: message.trimEnd() };
        // The pattern finds the id anywhere.
        if (!isOfAnother(jobId, line.text) && (page.wants?.(line) ?? true)) lines.push(line);
      }
      nextToken = answer.nextToken;
      if (nextToken === undefined) break;
    }
    const isCut = nextToken !== undefined && lines.length < page.limit;
    return { lines: lines.sort((a, b) => a.at - b.at).slice(0, page.limit), isCut };
  }

  private async page(jobId: JobId, page: LogPage, nextToken: string | undefined) {
    const { since, until, limit, wants, signal } = page;
    try {
      return await this.client.send(
        new FilterLogEventsCommand({
          logGroupName: this.logGroup,
          // Quoted: without quotes "-" would split the id into terms.
          filterPattern: `"${jobId}"`,
          startTime: since,
          ...(until === undefined ? {} : { endTime: until }),
          limit: wants === undefined ? Math.min(limit, LARGEST_PAGE) : LARGEST_PAGE,
          nextToken,
        }),
        signal === undefined ? {} : { abortSignal: signal },
      );
    } catch (cause) {
      signal?.throwIfAborted();
      throw this.translated(jobId, cause);
    }
  }

  /** Who reads logs has named the group, and nothing else says that it was the wrong one. */
  private translated(jobId: JobId, cause: unknown): Error {
    const { name } = faultOf(cause);
    const details = { jobId, logGroup: this.logGroup, fault: name };
    const denial = denialOf(cause, { action: 'logs:FilterLogEvents', resource: this.logGroup });
    if (denial !== undefined) return denial;
    if (name === 'ResourceNotFoundException')
      return new NotFoundError(`there is no log group ${this.logGroup}`, details, { cause });
    return new StoreUnavailableError(`logs in ${this.logGroup} cannot be read: ${name}`, details, { cause });
  }
}
