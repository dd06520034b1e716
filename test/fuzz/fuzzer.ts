import fc from 'fast-check';

/** Tries one side of the system with inputs that a seed draws. */
export interface Fuzzer {
  readonly name: string;
  /** What it tries, and what must hold, in a line. */
  readonly what: string;
  /** Inputs that it tries where it is one of the tests. */
  readonly runs: number;
  /** What must hold for every input. */
  readonly property: fc.IAsyncProperty<unknown>;
  /** Ends what it started. */
  close?(): Promise<void>;
}

/** How long one input may take: beyond that it is a hang. */
const hangMs = 60_000;

export interface FuzzRun {
  readonly seed: number;
  readonly runs?: number;
  /** After which no further input is tried. */
  readonly limitMs?: number;
}

/** Tries inputs of one seed; the answer is how many held, and the smallest that did not, with what happened. */
export async function tryInputs(
  { property, name }: Fuzzer,
  { seed, runs = 1_000_000, limitMs }: FuzzRun,
): Promise<{ readonly held: number; readonly failure?: string }> {
  const details = await fc.check(property, {
    seed,
    numRuns: runs,
    timeout: hangMs,
    ...(limitMs === undefined ? {} : { interruptAfterTimeLimit: limitMs, markInterruptAsFailure: false }),
  });
  // Without a counterexample time was up before the first input had been tried.
  if (!details.failed || details.counterexample === null) return { held: details.numRuns };
  const report = fc.defaultReportMessage(details as fc.RunDetails<unknown>);
  const { errorInstance: error } = details;
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { held: details.numRuns, failure: `${name}, seed ${String(seed)}: ${report ?? 'failed'}\n${cause}` };
}

/** Throws where something does not hold, with what was seen. */
export function hold(isTrue: boolean, claim: string, seen: unknown): asserts isTrue {
  if (isTrue) return;
  const text = typeof seen === 'string' ? seen : JSON.stringify(seen);
  throw new Error(`${claim}: ${text.slice(0, 2_000)}`);
}
