import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { Fault, FaultSubject } from '../../src/local/http/fault-hook.ts';
import { coreutils } from '../support/coreutils.ts';
import { twoCopies } from '../support/cloned-jobs.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

/** By what S3 bills, in its own names: those that are not here are GETs. */
const classOf: Readonly<Record<string, 'put' | 'list' | 'other'>> = {
  PutObject: 'put',
  CreateMultipartUpload: 'put',
  UploadPart: 'put',
  CompleteMultipartUpload: 'put',
  ListObjectsV2: 'list',
  ListMultipartUploads: 'list',
  DeleteObject: 'other',
  DeleteObjects: 'other',
  AbortMultipartUpload: 'other',
};

const slowDown: Fault = { error: { status: 503, code: 'SlowDown' } };
const throttled: Fault = { error: { status: 400, code: 'ThrottlingException' } };

/** Counts what the services are asked for, each try by itself, and refuses some. */
class Counter {
  s3 = { put: 0, get: 0, list: 0, other: 0 };
  dynamodb = 0;
  launches = 0;
  refused = 0;
  /** The last time that anything was asked for. */
  lastMs = 0;
  private isOn = false;

  /** From nothing: the test may be tried again. */
  begin(): void {
    this.s3 = { put: 0, get: 0, list: 0, other: 0 };
    this.dynamodb = this.launches = this.refused = this.lastMs = 0;
    this.isOn = true;
  }

  end(): void {
    this.isOn = false;
  }

  readonly onRequest = ({ service, operation, invocationType }: FaultSubject): Fault | undefined => {
    if (!this.isOn) return undefined;
    this.lastMs = performance.now();
    if (service === 's3') return this.refuse((this.s3[classOf[operation] ?? 'get'] += 1), 11, slowDown);
    if (service === 'dynamodb') return this.refuse((this.dynamodb += 1), 40, throttled);
    if (service === 'lambda' && invocationType === 'Event') this.launches += 1;
    return undefined;
  };

  private refuse(count: number, every: number, fault: Fault): Fault | undefined {
    if (count % every !== 0) return undefined;
    this.refused += 1;
    return fault;
  }
}

const text = Buffer.from(Array.from({ length: 400 }, (_, line) => `${(line * 7919) % 400} line\n`).join(''));
/** Synthesis takes its time on a busy machine. */
const startMs = 400_000;
const maps = 4;
const counter = new Counter();
let system: EmbeddedSystem;
let input: string;

beforeAll(async () => {
  system = await EmbeddedSystem.start({ slots: 16, onRequest: counter.onRequest });
  input = await system.put('lines', text);
}, startMs);

afterAll(() => system.stop());

/** A sort whose maps have two copies each, one of which loses at once or a while later. */
const job = (name: string): JobSpecInput => ({
  name,
  policy: 'dolly',
  policyConfig: twoCopies({ budgetShare: 1 }),
  stages: [
    {
      name: 'slow',
      operator: 'exec',
      options: { command: ['sh', '-c', 'sleep 0.$(($$ % 8 + 1)); cat'] },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / maps) }],
      partitions: 2,
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'slow', pattern: 'all-to-all' }] },
  ],
});

/** Resolves when nothing has been asked for in a while: nobody is asked whether the job has ended, which would count. */
async function quiet(): Promise<void> {
  await system.until(
    'the end of all requests',
    () => (counter.lastMs > 0 && performance.now() - counter.lastMs > 8_000 ? true : undefined),
    240_000,
  );
}

describe('the requests that a job tells', () => {
  it('are those that the services were asked for, by copies that lost and tries that were refused as well', async () => {
    counter.begin();
    const jobId = await system.submit(job('counted'));
    await delay(3_000);
    await quiet();
    counter.end();
    const told = await system.ended(jobId);
    expect(told).toMatchObject({ state: 'succeeded', attempts: { lost: 0 } });
    expect(coreutils('sort', [], await system.output(told)).equals(coreutils('sort', [], text))).toBe(true);
    expect(told.attempts.clones).toBeGreaterThan(0);
    expect(counter.refused).toBeGreaterThan(0);
    const { requests, costs } = told;
    expect(requests?.uncounted).toBe(0);
    // What a worker asks for in and after its last write, and a function too, is not told: some of each attempt's
    // clean-up, and never more than there was. Nor is what computes the forecast of the next run, which is nobody's.
    for (const name of ['put', 'get', 'list', 'other'] as const) {
      const unsaid = counter.s3[name] - (requests?.s3[name] ?? 0);
      expect([name, unsaid >= 0, unsaid <= 3]).toEqual([name, true, true]);
    }
    // Of each attempt two: its last write, which tells its count, and its note in the scheduler's inbox; as many of each
    // of the five functions; and that one of them was refused and tried again.
    const unsaid = counter.dynamodb - (requests?.dynamodb.calls ?? 0);
    expect(unsaid).toBeGreaterThanOrEqual(0);
    expect(unsaid).toBeLessThanOrEqual(2 * (told.attempts.launched + 5) + 2);
    // Launches, the API, Plan, Schedule and Finish, each once or, where a step was tried again, more often.
    expect(requests?.lambda).toBeGreaterThanOrEqual(told.attempts.launched + 4);
    expect(counter.launches).toBeGreaterThanOrEqual(told.attempts.launched);
    const { put = 0, list = 0, get = 0 } = requests?.s3 ?? {};
    expect(costs?.storage).toBeCloseTo(((put + list) * 0.005 + get * 0.0004) / 1_000, 9);
    const { writeUnits = 0, readUnits = 0 } = requests?.dynamodb ?? {};
    expect(costs?.records).toBeCloseTo((writeUnits * 0.625 + readUnits * 0.125) / 1e6, 9);
    const parts = Object.values(costs ?? {}) as number[];
    expect(told.dollars).toBeCloseTo(
      parts.reduce((sum, part) => sum + part, 0),
      9,
    );
  });
});
