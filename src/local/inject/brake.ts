import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { signalGroup } from '../lambda/signal-group.ts';

/** Slows processes down, or has them stand still. */
export interface Brake {
  /** Makes the process group that `pid` leads run `factor` times slower until it ends or the brake is closed. */
  slow(pid: number, factor: number): void;
  /** Stops the process group that `pid` leads for so long, or until the brake is closed. Not for one that it slows. */
  freeze(pid: number, ms: number): void;
  /** Lets all run freely again; resolves once they do. */
  close(): Promise<void>;
}

const BRAKE_PATH = fileURLToPath(new URL('./brake-process.ts', import.meta.url));

/**
 * Starts a brake: a process that stops and continues others.
 *
 * It is a process of its own for two reasons. The stack serves S3 and the rest in its one thread, and would keep
 * time badly; and if the stack is killed outright, somebody has to be left who continues what is stopped, for a
 * stopped process cannot see that its parent is gone. Where it is the brake that dies, the stack continues them.
 */
export function startBrake(): Brake {
  const held = new Set<number>();
  // A session of its own: Ctrl-C and a killed process group are not to reach it before its work is done.
  const child = spawn(process.execPath, [BRAKE_PATH], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const gone = new Promise<void>((resolve) => {
    const release = (): void => {
      for (const pid of held) signalGroup(pid, 'SIGCONT');
      held.clear();
      resolve();
    };
    child.once('error', release).once('exit', release);
  });
  // A brake that is gone has nobody to listen; `exit` tells of that.
  child.stdin.on('error', () => undefined);
  const order = (kind: 'slow' | 'freeze', pid: number, amount: number): void => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    held.add(pid);
    child.stdin.write(`${kind} ${pid} ${amount}\n`);
  };
  return {
    slow: (pid, factor) => {
      order('slow', pid, factor);
    },
    freeze: (pid, ms) => {
      order('freeze', pid, ms);
    },
    close: () => {
      child.stdin.end();
      return gone;
    },
  };
}
