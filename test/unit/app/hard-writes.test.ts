import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { MemoryAttemptStore } from '../../../src/adapters/memory/memory-attempt-store.ts';
import type { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { type AttemptId, taskOf } from '../../../src/contracts/ids.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import type { AttemptRecord } from '../../../src/contracts/records.ts';
import { durationMs, epochMs, later } from '../../../src/contracts/units.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

const hourMs = 3_600_000;
const heartbeatMs = durationMs(1_000);
const tickMs = 100;

/** How the writes of an attempt go. */
interface Hardship {
  /** Its clock's distance from the scheduler's. */
  readonly clockMs: number;
  readonly workMs: number;
  /** From the stamp of its result to the write. */
  readonly lateMs: number;
  readonly note: 'told' | 'lost' | 'doubled' | 'late';
}

const arbHardship: fc.Arbitrary<Hardship> = fc.record({
  clockMs: fc.constantFrom(-hourMs, 0, hourMs),
  workMs: fc.integer({ min: 0, max: 5_000 }),
  lateMs: fc.constantFrom(0, 6_000, 60_000),
  note: fc.constantFrom('told', 'lost', 'doubled', 'late'),
});

/** Has reads of records alone find every other time what was there so long before, as reads that are not consistent may. */
function readLate(attempts: MemoryAttemptStore, clock: MemoryClock, lateMs: number): void {
  const seen: { readonly at: number; readonly records: ReadonlyMap<AttemptId, AttemptRecord> }[] = [];
  const read = attempts.read.bind(attempts);
  let reads = 0;
  attempts.read = async (space, ids, what) => {
    const now = clock.now();
    const { attempts: all } = await attempts.all(space);
    seen.push({
      at: now,
      records: new Map(
        (
          await read(
            space,
            all.map(({ attemptId }) => attemptId),
            'records',
          )
        ).attempts.map((each) => [each.attemptId, each]),
      ),
    });
    if (what !== 'records' || ++reads % 2 === 0) return read(space, ids, what);
    const { records } = seen.findLast(({ at }) => at <= now - lateMs) ?? {
      records: new Map<AttemptId, AttemptRecord>(),
    };
    return { attempts: ids.flatMap((id) => records.get(id) ?? []), results: [], replicas: [] };
  };
}

async function planned(): Promise<{
  system: ScriptedSystem;
  jobId: Awaited<ReturnType<typeof submitJob>>['jobId'];
}> {
  const system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two six'));
  const { jobId } = await submitJob(system, {
    spec: {
      name: 'words',
      policy: 'none',
      stages: [
        { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }] },
        { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
      ],
    },
  });
  await planJob(system.deps, jobId);
  return { system, jobId };
}

/** A worker that reports all the while, and whose result lands when it lands. Answers when its end was written. */
async function work(
  system: ScriptedSystem,
  payload: AttemptPayload,
  hard: Hardship,
): Promise<number | undefined> {
  const { clock, attempts } = system;
  const space = system.space(payload);
  const { attemptId } = payload;
  const own = () => epochMs(clock.now() + hard.clockMs);
  const place = { node: `node-${attemptId}`, zone: 'z' };
  if ((await attempts.claim(space, attemptId, place, own(), heartbeatMs)) === 'refused') return undefined;
  const until = later(clock.now(), durationMs(hard.workMs));
  const lands = later(until, durationMs(hard.lateMs));
  const committedAt = epochMs(until + hard.clockMs);
  while (clock.now() + heartbeatMs < lands) {
    await clock.sleep(heartbeatMs);
    if ((await attempts.report(space, attemptId, progress(50), own(), heartbeatMs)) === 'cancel') break;
  }
  if (lands > clock.now()) await clock.sleep(durationMs(lands - clock.now()));
  const counts = { bytesIn: 100, bytesOut: 10, recordsIn: 2, recordsOut: 1, counters: { seen: 1 } };
  await attempts.commit(space, {
    ...{ taskId: taskOf(attemptId), attemptId, committedAt, ...counts },
    partitions: { lengths: [10, 0], crcs: [1, 0] },
    final: { kind: 'empty' },
    progress: progress(100),
  });
  const note = { attemptId, kind: 'end' } as const;
  if (hard.note === 'told' || hard.note === 'doubled') await attempts.tell(space, note);
  if (hard.note === 'doubled' || hard.note === 'late')
    void clock.sleep(durationMs(60_000)).then(() => attempts.tell(space, note));
  return clock.now();
}

/** Runs a job whose attempts meet hardships in turn; answers each launch, and when each end was written. */
async function run(
  hardships: readonly Hardship[],
  readsLateMs = 0,
): Promise<{
  readonly outcome: string;
  readonly launches: readonly string[];
  readonly mapsEndedAt: number;
  readonly reducesLaunchedAt: number;
}> {
  const { system, jobId } = await planned();
  if (readsLateMs > 0) readLate(system.attempts, system.clock, readsLateMs);
  let taken = 0;
  let mapsEndedAt = 0;
  let reducesLaunchedAt = Infinity;
  system.onLaunch = (payload) => {
    const hard = hardships[taken++ % hardships.length];
    if (hard === undefined) throw new Error('no hardship');
    const isMap = payload.attemptId.startsWith('map/');
    if (!isMap) reducesLaunchedAt = Math.min(reducesLaunchedAt, system.clock.now());
    void work(system, payload, hard).then((endedAt) => {
      if (isMap) mapsEndedAt = Math.max(mapsEndedAt, endedAt ?? 0);
    });
    return Promise.resolve('accepted');
  };
  const residency = { owner: 'one', until: later(system.clock.now(), durationMs(1e9)) };
  const { outcome } = await system.whileTimePasses(runScheduler(system.deps, jobId, residency), 600_000);
  return { outcome, launches: system.launches, mapsEndedAt, reducesLaunchedAt };
}

const once = (launches: readonly string[]): readonly string[] =>
  [...new Set(launches.map((id) => id))].toSorted();

describe('writes that come late, and clocks that differ', () => {
  it.each([6_000, 60_000])(
    'launch no task again whose result lands %d ms after its stamp',
    async (lateMs) => {
      for (const clockMs of [-hourMs, 0, hourMs]) {
        const { outcome, launches } = await run([{ clockMs, workMs: 500, lateMs, note: 'lost' }]);
        expect(outcome).toBe('finish');
        expect(launches.toSorted()).toEqual(
          [
            'map/0/0',
            'map/1/0',
            'map/2/0',
            'reduce/0/0',
            ...launches.filter((id) => id.startsWith('reduce/') && id !== 'reduce/0/0'),
          ].toSorted(),
        );
        expect(launches.every((id) => id.endsWith('/0'))).toBe(true);
      }
    },
  );

  it('are acted on at the second tick after the write, and where the note is lost with the next report that is due', async () => {
    const told = await run([{ clockMs: hourMs, workMs: 2_000, lateMs: 0, note: 'told' }]);
    expect(told.reducesLaunchedAt - told.mapsEndedAt).toBeLessThanOrEqual(2 * tickMs);
    const lost = await run([{ clockMs: -hourMs, workMs: 2_000, lateMs: 0, note: 'lost' }]);
    expect(lost.reducesLaunchedAt - lost.mapsEndedAt).toBeLessThanOrEqual(heartbeatMs + 4 * tickMs);
  });

  it('end every job exactly, each task launched once, whatever comes together', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(arbHardship, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(0, 300, 2_000),
        async (hardships, readsLateMs) => {
          const { outcome, launches } = await run(hardships, readsLateMs);
          expect(outcome).toBe('finish');
          expect(launches.every((id) => id.endsWith('/0'))).toBe(true);
          expect(once(launches)).toEqual(launches.toSorted());
        },
      ),
      { numRuns: 40 },
    );
  }, 120_000);
});
