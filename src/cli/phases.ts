import { formatBytes, formatDuration, plural } from '../report/format.ts';
import type { Console } from './console.ts';

/** What a command that runs a job goes through, in this order; a stage's own progress is shown in `running`. */
export const phaseNames = [
  'starting',
  'synthesizing',
  'uploading',
  'running',
  'downloading',
  'stopping',
] as const;
export type PhaseName = (typeof phaseNames)[number];

/** How long each phase took, in whole milliseconds; those that were not gone through are absent. */
export type PhaseTimes = Readonly<Partial<Record<PhaseName, number>>>;

const redrawMs = 200;
/** Parts of all bytes between two lines where nothing can be redrawn. */
const lineShare = 0.25;
/** Fewer bytes are over before anybody could read of them. */
const leastTold = 16 * 1024 * 1024;

/**
 * Says from the first moment on what is being done, so that nobody looks at an empty screen, and takes the time of it: a
 * line that is redrawn on a terminal, elsewhere a line for each phase. Shows nothing where `isQuiet`.
 */
export class Phases {
  readonly #console: Console;
  readonly #isQuiet: boolean;
  readonly #ms = new Map<PhaseName, number>();
  #current: { readonly name: PhaseName; readonly since: number } | undefined;
  #detail = '';
  #isDrawn = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(console: Console, isQuiet: boolean) {
    this.#console = console;
    this.#isQuiet = isQuiet;
  }

  /** Begins a phase and ends the one before. A phase may come again: its times are added up. */
  enter(name: PhaseName, detail = ''): void {
    if (this.#current?.name === name) return;
    this.end();
    this.#current = { name, since: performance.now() };
    this.#detail = detail;
    if (this.#isQuiet || name === 'running') return; // The job's own bars or lines are shown then.
    if (this.#columns === undefined) {
      this.#console.err(`${name}${detail === '' ? '' : ` ${detail}`}\n`);
      return;
    }
    this.#draw();
    this.#timer = setInterval(() => {
      this.#draw();
    }, redrawMs);
    this.#timer.unref();
  }

  /** Ends the phase under way and takes its line away. */
  end(): void {
    clearInterval(this.#timer);
    if (this.#isDrawn) this.#console.err('\r\u001b[2K');
    this.#isDrawn = false;
    if (this.#current === undefined) return;
    const { name, since } = this.#current;
    this.#ms.set(name, (this.#ms.get(name) ?? 0) + performance.now() - since);
    this.#current = undefined;
  }

  /** A phase of so many bytes: the function takes how many more are done. */
  enterBytes(name: PhaseName, total: number, files: number): (more: number) => void {
    const all = `${formatBytes(total)} in ${plural(files, 'file')}`;
    this.enter(name, all);
    let done = 0;
    let told = 0;
    return (more) => {
      done += more;
      this.#detail = `${formatBytes(done)} of ${all}`;
      if (this.#isQuiet || this.#columns !== undefined || total < leastTold) return;
      if (done >= total || done - told < total * lineShare) return;
      told = done;
      this.#console.err(`${name} ${this.#detail}\n`);
    };
  }

  /** Of the phases that have ended. */
  times(): PhaseTimes {
    return Object.fromEntries(
      phaseNames.flatMap((name) => {
        const ms = this.#ms.get(name);
        return ms === undefined ? [] : [[name, Math.round(ms)]];
      }),
    );
  }

  get #columns(): number | undefined {
    return this.#console.terminalColumns();
  }

  #draw(): void {
    if (this.#current === undefined) return;
    const { name, since } = this.#current;
    const time = formatDuration(performance.now() - since);
    const line = [name, this.#detail, time].filter((part) => part !== '').join(' ');
    this.#console.err(`\r\u001b[2K${this.#console.errStyle.dim(line.slice(0, (this.#columns ?? 80) - 1))}`);
    this.#isDrawn = true;
  }
}

/** The whole time and its parts, as one line: `12.1s: starting 3.2s, uploading 0.1s, …`. */
export function renderPhases(times: PhaseTimes): string {
  const parts = phaseNames.flatMap((name) => {
    const ms = times[name];
    return ms === undefined ? [] : [{ name, ms }];
  });
  const total = parts.reduce((sum, { ms }) => sum + ms, 0);
  return `${formatDuration(total)}: ${parts.map(({ name, ms }) => `${name} ${formatDuration(ms)}`).join(', ')}`;
}
