import { setTimeout as delay } from 'node:timers/promises';
import type { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { finalJobStates } from '../../src/contracts/records.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import { type ChaosSystem, leaseMs, slots } from './chaos-system.ts';
import { environmentOf, processesOf } from './processes.ts';

const lookMs = 500;

/** Inputs, outputs, and what was learned of the campaign's jobs, one object for each name: that outlives them. */
const mayStay = /^(?:input|results)\/|^forecasts\/chaos-\d+\.json$/;

/** Objects of jobs, and uploads that are nobody else's. */
async function leftIn(chaos: ChaosSystem): Promise<readonly string[]> {
  const found: string[] = [];
  const { system, strangers } = chaos;
  for await (const { key } of system.objects.list({ bucket: system.bucket, key: '' }))
    if (!mayStay.test(key)) found.push(`object ${key}`);
  const known = strangers.uploadIds;
  for (const bucket of chaos.buckets) {
    for (const { key, uploadId } of await strangers.uploadsIn(bucket))
      if (!known.has(uploadId) && !chaos.uploads.isUnknown(uploadId))
        found.push(`upload ${uploadId} to ${key}`);
  }
  return found;
}

const auditor = 'auditor-000000000000' as JobId;

/**
 * What the ledger says is held. A job's first word that arrives once more after the job's end puts it back there, until
 * some scheduler that wants slots has heard nothing of it for its patience: here that is the auditor.
 */
async function heldSlots(ledger: RuledCapacityLedger): Promise<readonly string[]> {
  const { [auditor]: own, ...grants } = (await ledger.view()).grants;
  if (Object.keys(grants).length === 0) {
    if (own !== undefined) await ledger.release(auditor);
    return [];
  }
  const now = epochMs(Date.now());
  await ledger.resize(auditor, slots + 1, {
    totalSlots: slots,
    now,
    length: durationMs(4 * leaseMs),
    live: 0,
  });
  return [`the ledger holds slots: ${JSON.stringify(grants)}`];
}

async function claimed(chaos: ChaosSystem): Promise<readonly string[]> {
  const found = await Promise.all(chaos.buckets.map((bucket) => chaos.system.claims(bucket)));
  return found.flat().map(({ jobId, prefix }) => `${jobId} still claims ${prefix}`);
}

async function unfinished(chaos: ChaosSystem): Promise<readonly string[]> {
  const found: string[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 1_000; pages++) {
    const page = await chaos.system.api.list({ limit: 100, ...(cursor === undefined ? {} : { cursor }) });
    for (const { jobId, state } of page.jobs)
      if (!finalJobStates.includes(state)) found.push(`${jobId} is ${state}`);
    cursor = page.cursor;
    if (cursor === undefined) break;
  }
  return found;
}

/** Programs of `exec` stages, and what these have started, that live though no job does. */
const programs = (chaos: ChaosSystem): readonly string[] =>
  processesOf(chaos.system.dir)
    .filter(({ pid }) => environmentOf(pid).has('OUTRIDER_TASK'))
    .map(({ pid, command }) => `process ${pid} of a job lives: ${command}`);

/** What must not be once all jobs of a stack have ended; waits up to `patienceMs` for what is still to be removed. */
export async function auditStack(chaos: ChaosSystem, patienceMs: number): Promise<readonly string[]> {
  const until = Date.now() + patienceMs;
  const ledger = chaos.system.ledger();
  for (;;) {
    const found = [
      ...(await leftIn(chaos)),
      ...(await heldSlots(ledger)),
      ...(await claimed(chaos)),
      ...(await unfinished(chaos)),
      ...programs(chaos),
    ];
    if (found.length === 0 || Date.now() > until) return [...found, ...(await chaos.strangers.harmed())];
    await delay(lookMs);
  }
}
