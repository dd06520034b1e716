import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { withoutInherited } from './inherited-files.ts';
import { guardGroup, startReaper } from './reaper.ts';
import { endStrays } from './strays.ts';

/** The variable that all processes of a group inherit, by which those that left it are found. */
const markName = 'OUTRIDER_PROCESS_MARK';

/** What a program is started with. */
export interface GroupOptions {
  /** The attempt's own directory: whoever works in it belongs to the group. */
  readonly cwd: string;
  /** All that the program sees; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** From standard input on, a number being a file of this process; no other file is open in the program. */
  readonly stdio: readonly ('ignore' | 'pipe' | number)[];
}

/** How a program ended: one of the two is null. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * A program that leads a process group of its own, which ends with it: nothing that it started outlives the attempt,
 * nor the worker, even one that is killed outright.
 */
export class ProcessGroup {
  readonly child: ChildProcess;
  /** Settles once the program is gone, before its pipes are; rejects where it could not be started. */
  readonly exited: Promise<ProgramEnd>;
  readonly #mark = randomUUID();
  readonly #cwd: string;
  readonly #release: (() => void) | undefined;

  constructor(program: string, args: readonly string[], { cwd, env, stdio }: GroupOptions) {
    startReaper();
    this.#cwd = cwd;
    this.child = spawn(program, args, {
      cwd,
      env: { ...env, [markName]: this.#mark },
      stdio: withoutInherited(stdio),
      detached: true,
    });
    const { pid } = this.child;
    this.#release = pid === undefined ? undefined : guardGroup(pid, this.#mark);
    this.exited = new Promise((resolve, reject) => {
      this.child.once('error', (cause) => {
        if (pid === undefined) reject(cause);
      });
      this.child.once('exit', (code, signal) => {
        // At once: what a program leaves in the background may hold its pipes open for ever.
        this.kill();
        resolve({ code, signal });
      });
    });
    this.exited.catch(() => undefined);
  }

  /** Kills all of the group; again does no harm. */
  kill(): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // Nobody is left in it.
    }
  }

  /** Kills what has left the group, as far as it can be found. */
  async endStrays(): Promise<void> {
    if (this.child.pid !== undefined) await endStrays({ mark: this.#mark, directory: this.#cwd });
  }

  /** Kills all of the group, and what has left it; resolves when the program is gone. Call it once, at the end. */
  async end(): Promise<void> {
    this.kill();
    await this.exited.catch(() => undefined);
    await this.endStrays();
    this.#release?.();
  }
}
