import { MemorySweepMark } from '../../src/adapters/memory/memory-sweep-mark.ts';
import { sweepJobs } from '../../src/app/sweep-jobs.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { HardAccount, type HardAccountOptions } from './hard-account.ts';
import { HardProcess, type Ill } from './hard-process.ts';
import { type HardVerdict, verdictOf } from './hard-verdict.ts';

/** A job over the object `s3://input/a`, and what befalls it. */
export interface HardRun extends Omit<HardAccountOptions, 'process'> {
  readonly spec: JobSpecInput;
  readonly input: string;
  readonly ills?: Readonly<Record<string, readonly Ill[]>>;
}

/** What it has come to, half an hour after its end, once what it may have left was swept up. */
export interface HardEnd {
  /** Undefined: it did not end. */
  readonly verdict: HardVerdict | undefined;
  readonly error: unknown;
  /** What each process called, in order. */
  readonly places: ReadonlyMap<string, readonly string[]>;
}

/** Nobody who was frozen for less comes back later. */
const restMs = 31 * 60_000;

/** Runs a job to its end, has its account swept, and looks at what is there. */
export async function hardRun({ spec, input, ills = {}, ...options }: HardRun): Promise<HardEnd> {
  const places = new Map<string, readonly string[]>();
  let verdict: HardVerdict | undefined;
  const process = (name: string, clock: Clock): HardProcess => {
    const begun = new HardProcess(clock, ills[name] ?? []);
    places.set(name, begun.places);
    return begun;
  };
  try {
    await HardAccount.use(
      { ...options, process },
      async (account) => {
        await account.objects.write({ bucket: 'input', key: 'a' }, Buffer.from(input));
        return account.run(spec);
      },
      async (account, jobId) => {
        await account.clock.sleep(durationMs(restMs));
        account.coordinator.settle(jobId, 'succeeded');
        const deps = { ...account.deps(new HardProcess(account.clock)), mark: new MemorySweepMark() };
        const until = later(account.clock.now(), durationMs(60_000));
        await sweepJobs(deps, { until, patienceMs: durationMs(0) });
        verdict = await verdictOf(account, jobId);
      },
    );
  } catch (error) {
    return { verdict, error, places };
  }
  return { verdict, error: undefined, places };
}

/** What is wrong with how a job ended that had to succeed, or may have been cancelled; empty: nothing. */
export function wrongWith(
  { verdict, error }: HardEnd,
  isOutput: (output: string) => boolean,
  mayBeCancelled = false,
): string[] {
  if (verdict === undefined) return [`did not end: ${String(error)}`];
  const { job, left, usedSlots, workedTwice } = verdict;
  const isCancelled = mayBeCancelled && job.state === 'cancelled';
  const isExact = job.state !== 'succeeded' || isOutput(verdict.output);
  const others = left.filter((key) => key !== 'a');
  return [
    ...(job.state === 'succeeded' || isCancelled ? [] : [`${job.state}: ${String(job.error?.message)}`]),
    ...(isExact ? [] : ['is not exact']),
    ...(others.length === 0 ? [] : [`leaves ${others.join(', ')}`]),
    ...(usedSlots === 0 ? [] : ['leaves slots']),
    ...workedTwice.map((id) => `${id} works twice`),
  ];
}
