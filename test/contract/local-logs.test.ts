import { CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startLogsServer } from '../../src/local/logs/server.ts';
import { scratchDir } from '../unit/cli/fixtures.ts';

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' };
const region = 'us-east-1';

/** AWS's client of a local server of one log group, whose one stream has these lines. */
async function clientOf(lines: readonly string[]): Promise<CloudWatchLogsClient> {
  const directory = await scratchDir();
  await writeFile(join(directory, 'stream.log'), lines.map((line) => `${line}\n`).join(''));
  const logs = await startLogsServer({
    credentials,
    region,
    logGroups: [{ name: 'jobs', directories: [directory] }],
  });
  onTestFinished(() => logs.close());
  return new CloudWatchLogsClient({ region, credentials, endpoint: logs.endpoint });
}

describe('the local CloudWatch Logs', () => {
  it('answers page by page, from the time that is asked for', async () => {
    const line = (second: number): string => `{"at":"1970-01-01T00:00:0${String(second)}.000Z","of":"job-a"}`;
    const client = await clientOf([line(1), line(2), '{"at":"1970-01-01T00:00:03.000Z"}', line(4), line(5)]);
    const ask = (nextToken?: string) =>
      client.send(
        new FilterLogEventsCommand({
          ...{ logGroupName: 'jobs', filterPattern: '"job-a"', startTime: 2_000, limit: 2, nextToken },
        }),
      );
    const first = await ask();
    expect(first.events?.map(({ timestamp, message }) => [timestamp, message])).toEqual([
      [2_000, line(2)],
      [4_000, line(4)],
    ]);
    const second = await ask(first.nextToken);
    expect([second.events?.map(({ timestamp }) => timestamp), second.nextToken]).toEqual([
      [5_000],
      undefined,
    ]);
  });

  it.each([{ startTime: -1 }, { endTime: -1 }, { limit: 0 }, { limit: 10_001 }])(
    'refuses %j, as AWS does',
    async (asked) => {
      const client = await clientOf([]);
      await expect(
        client.send(new FilterLogEventsCommand({ logGroupName: 'jobs', ...asked })),
      ).rejects.toMatchObject({ name: 'InvalidParameterException' });
    },
  );
});
