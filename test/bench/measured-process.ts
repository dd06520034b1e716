import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const sampleMs = 100;
/** Of Linux's clock in `/proc`, on every machine of today. */
const ticksPerSecond = 100;

/** One process of a program: what it is, its CPU seconds as last seen and its largest resident memory. */
export interface MeasuredProcess {
  readonly what: string;
  readonly cpuSeconds: number;
  readonly peakBytes: number;
}

/** What a program came to with all that it started. */
export interface Measured {
  readonly wallSeconds: number;
  /** Of all processes that were waited for: exact, as the shell tells it. */
  readonly cpuSeconds: number;
  /** Seen ten times a second; empty where there is no `/proc`. */
  readonly processes: readonly MeasuredProcess[];
}

/** A program under way. */
interface Started {
  readonly pid: number | undefined;
  /** Rejects with what it wrote to standard error where it fails. */
  readonly ended: Promise<{ readonly cpuSeconds: number; readonly output: string }>;
}

interface ProgramOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

function start(command: readonly string[], options: ProgramOptions, stdout: 'pipe' | 'ignore'): Started {
  // `times` tells in its second line what the children took, theirs included.
  const child = spawn('sh', ['-c', '"$@"; status=$?; times >&3; exit $status', 'sh', ...command], {
    ...options,
    stdio: ['ignore', stdout, 'pipe', 'pipe'],
  });
  let [output, errors, times] = ['', '', ''];
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-4_000)));
  child.stdio[3]?.on('data', (chunk: Buffer) => (times += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve)).then((status) => {
    if (status !== 0) throw new Error(`${command.join(' ')} failed: ${errors}`);
    return { cpuSeconds: secondsOf(times.split('\n')[1] ?? ''), output };
  });
  return { pid: child.pid, ended };
}

/** Runs a program to its end, for what it took and put out. Throws with what it wrote to standard error where it fails. */
export const timed = (command: readonly string[], options: ProgramOptions = {}): Started['ended'] =>
  start(command, options, 'pipe').ended;

/** Runs a program to its end, and looks at its processes. Throws with what it wrote to standard error where it fails. */
export async function measured(command: readonly string[], options: ProgramOptions = {}): Promise<Measured> {
  const began = performance.now();
  const { pid, ended } = start(command, options, 'ignore');
  const seen = new Map<string, MeasuredProcess>();
  const watching = new AbortController();
  const watched = watch(pid, seen, watching.signal);
  const { cpuSeconds } = await ended.finally(() => {
    watching.abort();
  });
  await watched;
  return { wallSeconds: (performance.now() - began) / 1_000, cpuSeconds, processes: [...seen.values()] };
}

/** Looks at a program's processes until the signal. */
async function watch(
  pid: number | undefined,
  seen: Map<string, MeasuredProcess>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    if (pid !== undefined) look(pid, seen);
    await delay(sampleMs);
  }
}

/** Sum of the two times of a line such as `0m1.200s 0m0.310s`. */
function secondsOf(line: string): number {
  let sum = 0;
  for (const [, minutes, seconds] of line.matchAll(/(\d+)m([\d.]+)s/g))
    sum += 60 * Number(minutes) + Number(seconds);
  return sum;
}

/** Notes all processes below `root`, by what they are. Processes come and go while it looks. */
function look(root: number, seen: Map<string, MeasuredProcess>): void {
  const parents = new Map<number, number>();
  const found = new Map<number, { cpuSeconds: number; began: string }>();
  for (const name of entries()) {
    const pid = Number(name);
    const fields = Number.isInteger(pid) ? read(`/proc/${name}/stat`)?.split(') ')[1]?.split(' ') : undefined;
    if (fields === undefined) continue;
    parents.set(pid, Number(fields[1]));
    const cpuSeconds = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
    found.set(pid, { cpuSeconds, began: fields[19] ?? '' });
  }
  const isBelow = (pid: number): boolean => {
    for (let at = parents.get(pid), depth = 0; at !== undefined && depth < 64; at = parents.get(at), depth++)
      if (at === root) return true;
    return false;
  };
  for (const [pid, { cpuSeconds, began }] of found) {
    if (!isBelow(pid)) continue;
    const peakKb = Number(/VmHWM:\s+(\d+)/.exec(read(`/proc/${String(pid)}/status`) ?? '')?.[1] ?? 0);
    const key = `${String(pid)}/${began}`;
    const before = seen.get(key);
    // A process that has ended and was not waited for yet has neither memory nor arguments.
    const [what, peakBytes] = [whatIs(pid) || before?.what, Math.max(peakKb * 1_024, before?.peakBytes ?? 0)];
    seen.set(key, { what: what ?? '', cpuSeconds, peakBytes });
  }
}

/** The last path among the arguments of a process says best what it is; else its program. */
function whatIs(pid: number): string {
  const words = (read(`/proc/${String(pid)}/cmdline`) ?? '').split('\0').filter((word) => word !== '');
  const script = words.slice(1).find((word) => /\.[cm]?[jt]s$/.test(word));
  return (script ?? words[0] ?? '').split('/').slice(-2).join('/');
}

function entries(): string[] {
  try {
    return readdirSync('/proc');
  } catch {
    return [];
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

/** Processes of one kind together: how many, their CPU seconds and the largest memory of one. */
export function byKind(
  processes: readonly MeasuredProcess[],
): readonly { what: string; processes: number; cpuSeconds: number; peakMb: number }[] {
  const kinds = Map.groupBy(processes, ({ what }) => what);
  const rows = Array.from(kinds, ([what, all]) => ({
    what,
    processes: all.length,
    cpuSeconds: Math.round(all.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) * 100) / 100,
    peakMb: Math.round(Math.max(...all.map(({ peakBytes }) => peakBytes)) / 1_048_576),
  }));
  return rows.toSorted((left, right) => right.cpuSeconds - left.cpuSeconds);
}
