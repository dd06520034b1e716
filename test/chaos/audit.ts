import { setTimeout as delay } from 'node:timers/promises';
import { finalJobStates } from '../../src/contracts/records.ts';
import type { ChaosSystem } from './chaos-system.ts';
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
      if (!known.has(uploadId) && !chaos.unseenUploads.has(uploadId))
        found.push(`upload ${uploadId} to ${key}`);
  }
  return found;
}

async function heldSlots(chaos: ChaosSystem): Promise<readonly string[]> {
  const { usedSlots, cloneSlots, grants } = await chaos.system.capacity();
  return usedSlots === 0 && cloneSlots === 0 && Object.keys(grants).length === 0
    ? []
    : [`the ledger holds ${usedSlots} slots, ${cloneSlots} of clones: ${JSON.stringify(grants)}`];
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
  for (;;) {
    const found = [
      ...(await leftIn(chaos)),
      ...(await heldSlots(chaos)),
      ...(await claimed(chaos)),
      ...(await unfinished(chaos)),
      ...programs(chaos),
    ];
    if (found.length === 0 || Date.now() > until) return [...found, ...(await chaos.strangers.harmed())];
    await delay(lookMs);
  }
}
