import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { answerOf } from '../../../src/app/plan-ahead.ts';
import { writeConnection } from '../../../src/cli/connection.ts';
import type { StackConnection } from '../../../src/cli/embedded-stack.ts';
import { execute } from '../../../src/cli/main.ts';
import { submitRequestSchema } from '../../../src/contracts/api.ts';
import type { JobRecord } from '../../../src/contracts/records.ts';
import { listen } from '../../../src/local/http/listen.ts';
import { readBody } from '../../../src/local/http/read-body.ts';
import { startS3Server } from '../../../src/local/s3/server.ts';
import { memoryConsole, scratchDir } from './fixtures.ts';

const subject = { name: 'wordcount', workers: [], deadlineMs: undefined, budgetDollars: undefined };

export const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' };
export const region = 'us-east-1';
export const jobId = 'wordcount-0123456789ab';

/** A directory in which `outrider local` seems to run: an API of canned jobs and a real local S3. */
export class FakeService {
  cwd = '';
  connection: StackConnection | undefined;
  readonly jobs = new Map<string, JobRecord>();
  readonly bodies: unknown[] = [];
  requests: string[] = [];
  attempts: unknown[] = [];
  allocations: unknown[] = [];
  /** What is answered to questions after a job that has been submitted, in the place of the job. */
  refusal: [status: number, answer: unknown] | undefined;
  /** Of jobs that have been taken. */
  private readonly tokens = new Set<string>();
  /** How many submissions are taken whose answers are lost. */
  lostAnswers = 0;
  /** What submissions are answered that are not taken, one each. */
  readonly submitRefusals: [status: number, answer: unknown][] = [];
  /** How many questions after a job are answered that something broke before it is told of. */
  outages = 0;

  async start(): Promise<void> {
    this.cwd = await scratchDir();
    const s3 = await startS3Server({ rootDir: join(this.cwd, 's3'), credentials, region });
    await s3.createBucket('data');
    const api = await listen(async (request, response) => {
      const body = await readBody(request, 1_000_000);
      this.requests.push(`${request.method ?? ''} ${request.url ?? ''}`);
      const [status, answer] = this.answer(request.method ?? '', request.url ?? '', body.toString());
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
    onTestFinished(async () => {
      await api.close();
      await s3.close();
    });
    this.connection = {
      apiUrl: `${api.endpoint}/v1`,
      region,
      credentials,
      environment: {
        AWS_ENDPOINT_URL_S3: s3.endpoint,
        AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: 'http://127.0.0.1:9',
      },
      outputs: { DataBucketName: 'data' },
    };
    await mkdir(join(this.cwd, '.outrider'));
    await writeConnection(join(this.cwd, '.outrider'), this.connection);
  }

  /** Options by which commands take it for a deployed service: an endpoint, and what AWS's own clients find. */
  asDeployed(): readonly string[] {
    const { connection } = this;
    if (connection === undefined) throw new Error('not started');
    vi.stubEnv('AWS_ENDPOINT_URL_S3', connection.environment['AWS_ENDPOINT_URL_S3'] ?? '');
    vi.stubEnv('AWS_ACCESS_KEY_ID', credentials.accessKeyId);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', credentials.secretAccessKey);
    vi.stubEnv('AWS_REGION', region);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    return ['--endpoint', connection.apiUrl, '--state-dir', 'none'];
  }

  async run(...args: readonly string[]) {
    const { console, written } = memoryConsole(this.cwd);
    const exitCode = await execute(args, console);
    return { exitCode, ...written };
  }

  private answer(method: string, url: string, body: string): [number, unknown] {
    if (method === 'POST' && url === '/v1/jobs') {
      const request = submitRequestSchema.parse(JSON.parse(body));
      this.bodies.push(request);
      const { clientToken = '' } = request;
      const refusal = this.submitRefusals.shift();
      if (refusal !== undefined) return refusal;
      const isFirst = !this.tokens.has(clientToken);
      if (clientToken !== '') this.tokens.add(clientToken);
      if (this.lostAnswers-- > 0) return [504, { message: 'Endpoint request timed out' }];
      return isFirst ? [201, { jobId, started: true }] : [200, { jobId, started: false }];
    }
    if (method === 'POST' && url === '/v1/plans') {
      const request: unknown = JSON.parse(body);
      this.bodies.push(request);
      return [200, answerOf({ basis: { kind: 'none', runs: 0, says: 'nothing' }, spread: 0 }, subject)];
    }
    if (url.startsWith('/v1/jobs?')) {
      const all = [...this.jobs.values()];
      return url.includes('cursor=')
        ? [200, { jobs: all.slice(1) }]
        : [200, { jobs: all.slice(0, 1), cursor: 'next' }];
    }
    if (method === 'PUT') this.bodies.push(JSON.parse(body));
    if (url.endsWith('/allocations')) return [200, { allocations: this.allocations }];
    if (url.endsWith('/attempts')) return [200, { attempts: this.attempts }];
    if (this.outages-- > 0) return [502, { message: 'Internal server error' }];
    if (this.refusal !== undefined) return this.refusal;
    const job = this.jobs.get(/^\/v1\/jobs\/([^/]+)/.exec(url)?.[1] ?? '');
    return job === undefined ? [404, { error: 'NotFound', message: 'no such job: x' }] : [200, job];
  }
}
