import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { HardAccount, type HardAccountOptions } from './hard-account.ts';
import { HardProcess, type Ill } from './hard-process.ts';
import { type HardVerdict, verdictOf } from './hard-verdict.ts';

/** What befalls whom, by names such as `scheduler 1`, `tokenize/0/0 1`, `finish 1`; and how far each clock is off. */
export interface Hardship extends Partial<HardAccountOptions> {
  readonly ills?: Readonly<Record<string, readonly Ill[]>>;
  readonly offMs?: (name: string) => number;
  readonly taskMs: number;
  /** Lines of the input, each a task of the first stage; absent: three tasks of ten bytes. */
  readonly lines?: number;
}

/** How a job under a hardship ended, and what is wrong with that. */
export interface HardOutcome {
  /** Empty: the output is exact, and each launch explained. */
  readonly complaints: readonly string[];
  /** What each process called, in order. */
  readonly places: ReadonlyMap<string, readonly string[]>;
  readonly verdict: HardVerdict | undefined;
  readonly events: readonly string[];
}

const stayMs = 13 * 60_000;
const line = 'one two three\n';
const textOf = (lines: number | undefined): string =>
  lines === undefined ? 'one two three\none two\none\n' : line.repeat(lines);
/** What the words of the text come to. */
const countsOf = (lines: number | undefined): string =>
  ['three', 'two', 'one'].map((word, place) => `${word}\t${String(lines ?? place + 1)}\n`).join('');
const words = (splitBytes: number): JobSpecInput => ({
  ...builtinJob('wordcount', { inputs: ['s3://input/a'], splitBytes, partitions: 2 }),
  policy: 'none',
});

/** A freeze leaves nothing half done; what lands late may land after all was cleaned up. */
const isClean = ({ kind }: Ill): boolean => kind === 'freeze-before' || kind === 'freeze-after';

function complaintsOf(
  verdict: HardVerdict,
  ills: Readonly<Record<string, readonly Ill[]>>,
  counts: string,
): string[] {
  const { job, output, unexplained, failed, launched, workedTwice, launchedTooOften } = verdict;
  const { left, usedSlots, enlisted } = verdict;
  const isHit = (attemptId: string): boolean => ills[`${attemptId} 1`] !== undefined;
  const isTaskHit = (attemptId: string): boolean => isHit(attemptId.replace(/\d+$/, '0'));
  const copies = launched.filter(({ reason }) => reason !== 'first' && reason !== 'retry');
  const told: [string, readonly string[]][] = [
    ['does not succeed', job.state === 'succeeded' ? [] : [`${job.state}: ${String(job.error?.message)}`]],
    ['is not exact', job.state !== 'succeeded' || output === counts ? [] : [output]],
    ['launches without a reason', unexplained],
    ['gives up who was well', failed.filter((id) => !isHit(id))],
    ['copies who was well', copies.map(({ attemptId }) => attemptId).filter((id) => !isTaskHit(id))],
    ['works twice', workedTwice],
  ];
  if (Object.values(ills).flat().every(isClean))
    told.push(
      // Where answers are lost calls are repeated: claims sort that out.
      ['launches once more than it is entered', launchedTooOften],
      ['leaves data', left],
      ['leaves slots', usedSlots === 0 ? [] : [String(usedSlots)]],
    );
  // One that slept beyond its stay enlists the ended job anew and has no time to serve it: the next resident strikes it.
  if (
    Object.values(ills)
      .flat()
      .every((ill) => isClean(ill) && ill.ms < stayMs)
  )
    told.push(['leaves jobs on the roster', enlisted === 0 ? [] : [String(enlisted)]]);
  return told.flatMap(([what, which]) => (which.length === 0 ? [] : [`${what}: ${which.join(', ')}`]));
}

/** Runs a job of two stages, three tasks and two, under a hardship. */
export async function hardJob({ ills = {}, offMs, lines, ...options }: Hardship): Promise<HardOutcome> {
  const processes = new Map<string, HardProcess>();
  const process = (name: string, clock: Clock): HardProcess => {
    const begun = new HardProcess(clock, ills[name] ?? [], offMs?.(name) ?? 0);
    processes.set(name, begun);
    return begun;
  };
  let verdict: HardVerdict | undefined;
  let events: readonly string[] = [];
  const complaints: string[] = [];
  try {
    await HardAccount.use(
      { ...options, process },
      async (account) => {
        ({ events } = account);
        await account.objects.write({ bucket: 'input', key: 'a' }, Buffer.from(textOf(lines)));
        return account.run(words(lines === undefined ? 10 : line.length));
      },
      async (account, jobId) => {
        verdict = await verdictOf(account, jobId);
        complaints.push(...complaintsOf(verdict, ills, countsOf(lines)));
      },
    );
  } catch (cause) {
    complaints.push(String(cause));
  }
  const places = new Map([...processes].map(([name, { places: made }]) => [name, made]));
  return { complaints, places, verdict, events };
}
