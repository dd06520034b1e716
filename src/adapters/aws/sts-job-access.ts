import * as z from 'zod';
import {
  BrokenInvariantError,
  InvalidInputError,
  JobFailedError,
  StoreUnavailableError,
} from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { SessionTag, TableSchema } from '../../contracts/settings.ts';
import { durationMs, type EpochMs } from '../../contracts/units.ts';
import type { IdSource } from '../../ports/id-source.ts';
import type { JobAccess, JobGrant } from '../../ports/job-access.ts';
import type { Log } from '../../ports/log.ts';
import { accessKey, type AccessSession, encodeSession, sessionKey } from './access-item.ts';
import type { DynamoTable } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import { faultOf, isPassing } from './faults.ts';
import { partitionOf, sessionPolicy } from './session-policy.ts';
import { timeField } from './item-fields.ts';

/** What is asked of STS for a job. */
export interface RoleRequest {
  readonly RoleArn: string;
  readonly RoleSessionName: string;
  readonly DurationSeconds: number;
  readonly Tags: { Key: string; Value: string }[];
  readonly Policy: string;
}

/** Assumes a role; rejects with the service's error as the SDK gives it. */
export type AssumeRole = (request: RoleRequest) => Promise<AccessSession>;

/** A role assumed by a role lasts an hour at most, whatever its own limit. */
const SESSION_SECONDS = 3_600;
/**
 * A session with less than this left is renewed. It must outlast the longest Lambda attempt (15 minutes), the age
 * that its launch may have (2), and what clocks differ; Fargate attempts read the renewed one when theirs runs out.
 */
const RENEW_BELOW_MS = durationMs(30 * 60_000);
/** With less than this left, and none to be had, nothing is launched. */
const LAUNCH_ABOVE_MS = durationMs(18 * 60_000);
/** Jobs whose sessions are remembered: more than a resident has. One that is forgotten is read again. */
const REMEMBERED = 256;
/** Role sessions have names of at most so many characters. */
const SESSION_NAME_CHARS = 64;

const accessItem = z.object({ word: z.string(), until: timeField });

type Known = { readonly jobId: JobId } & z.output<typeof accessItem>;

/**
 * Sessions of the one role that jobs have, each tagged with its job, by which the role's policy tells whose records
 * and data it may reach. They lie in the table under a word that cannot be guessed: payloads and the environments
 * of tasks, which others may see, hold the word and no keys.
 */
export class StsJobAccess implements JobAccess {
  private readonly parts: {
    readonly assume: AssumeRole;
    readonly table: DynamoTable;
    readonly ids: IdSource;
    readonly log: Log;
    readonly roleArn: string;
    readonly dataBucket: string;
    /**
     * By how many milliseconds the clock of `keep`'s caller is ahead of AWS's, as far as answers have told; negative: behind.
     * Sessions end by AWS's. Asked anew at each use, after the session was read.
     */
    readonly aheadMs: () => number;
  };
  /** Those that were read last, at the end. */
  private readonly known = new Map<JobId, Known>();

  constructor(parts: StsJobAccess['parts']) {
    this.parts = parts;
  }

  async keep(grant: JobGrant, now: EpochMs): Promise<string> {
    const { jobId } = grant;
    const known = this.known.get(jobId);
    if (known !== undefined && this.isFresh(known, now)) return known.word;
    const kept = await this.load(jobId, now);
    const latest = this.isFresh(kept, now) ? kept : await this.renew(grant, kept, now);
    this.remember(latest);
    return latest.word;
  }

  private remember(latest: Known): void {
    this.known.delete(latest.jobId);
    this.known.set(latest.jobId, latest);
    const [oldest] = this.known.keys();
    if (this.known.size > REMEMBERED && oldest !== undefined) this.known.delete(oldest);
  }

  /** How long a session lasts from what is `now` for our caller. */
  private leftMs({ until }: Known, now: EpochMs): number {
    return until - now + this.parts.aheadMs();
  }

  private isFresh(known: Known, now: EpochMs): boolean {
    return this.leftMs(known, now) > RENEW_BELOW_MS;
  }

  /** The job's word, drawn by whichever scheduler comes first. */
  private async load(jobId: JobId, now: EpochMs): Promise<Known> {
    const { table, ids } = this.parts;
    const key = accessKey(jobId);
    let item = await table.get(key);
    if (item === undefined) {
      await table.putNew({ ...key, word: ids.token(), until: 0, [TableSchema.ttl]: expiryOf(now) });
      item = await table.get(key);
    }
    const parsed = accessItem.safeParse(item);
    if (!parsed.success) throw new BrokenInvariantError("a job's access cannot be read", { jobId });
    return { jobId, ...parsed.data };
  }

  private async renew(grant: JobGrant, kept: Known, now: EpochMs): Promise<Known> {
    // Not in the try: what a job asks for and no session can name is no fault of STS, and does not pass.
    const request = this.requestFor(grant);
    let session: AccessSession;
    try {
      session = await this.parts.assume(request);
    } catch (cause) {
      const error = translated(cause, grant.jobId, this.parts.roleArn);
      if (!(error instanceof StoreUnavailableError) || this.leftMs(kept, now) < LAUNCH_ABOVE_MS) throw error;
      this.parts.log.warn('session-not-renewed', {
        jobId: grant.jobId,
        until: kept.until,
        error: String(cause),
      });
      return kept;
    }
    const { table } = this.parts;
    const { jobId } = grant;
    // Of two schedulers' sessions the one that lasts longer stays; both are good.
    const when = 'attribute_not_exists(#until) OR #until < :set_until';
    await table.update(sessionKey(kept.word), { set: encodeSession(session), when });
    // Only now: what this item promises must be there.
    await table.update(accessKey(jobId), { set: { until: session.until }, when: '#until < :set_until' });
    return { ...kept, until: session.until };
  }

  private requestFor(grant: JobGrant): RoleRequest {
    const { roleArn, dataBucket } = this.parts;
    return {
      RoleArn: roleArn,
      RoleSessionName: grant.jobId.slice(0, SESSION_NAME_CHARS),
      DurationSeconds: SESSION_SECONDS,
      Tags: [{ Key: SessionTag.job, Value: grant.jobId }],
      Policy: sessionPolicy(grant, { dataBucket, partition: partitionOf(roleArn) }),
    };
  }
}

function translated(cause: unknown, jobId: JobId, roleArn: string): Error {
  const fault = faultOf(cause);
  const told = `${fault.name}: ${fault.message}`;
  if (/AccessDenied/.test(fault.name)) {
    return new JobFailedError(
      `the scheduler may not assume the role of jobs, ${roleArn}: ${told}`,
      { jobId },
      { cause },
    );
  }
  if (/PackedPolicyTooLarge/.test(fault.name)) {
    const message = 'the job names too many source buckets or too long an output prefix for a session';
    return new InvalidInputError(`${message}: ${told}`, { jobId }, { cause });
  }
  if (isPassing(fault)) {
    return new StoreUnavailableError('no session for the job', { jobId, fault: fault.name }, { cause });
  }
  return new JobFailedError(`no session for the job: ${told}`, { jobId }, { cause });
}
