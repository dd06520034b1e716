import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Whether this machine tells what its processes are: Linux does. */
export const seesProcesses = process.platform === 'linux';

const fileOf = (pid: number, name: string): string => {
  try {
    return readFileSync(`/proc/${String(pid)}/${name}`, 'latin1');
  } catch {
    return ''; // It has ended meanwhile.
  }
};

const linkOf = (pid: number, name: string): string => {
  try {
    return readlinkSync(`/proc/${String(pid)}/${name}`);
  } catch {
    return '';
  }
};

/** Whether a process has ended and only waits to be asked for its exit code. */
const isZombie = (pid: number): boolean => /^State:\s+Z/m.test(fileOf(pid, 'status'));

/** The environment that a process was started with; empty where it cannot be seen. */
export function environmentOf(pid: number): ReadonlyMap<string, string> {
  const pairs = fileOf(pid, 'environ').split('\0');
  return new Map(pairs.filter((pair) => pair.includes('=')).map((pair) => cut(pair)));
}

function cut(pair: string): [name: string, value: string] {
  const at = pair.indexOf('=');
  return [pair.slice(0, at), pair.slice(at + 1)];
}

/** Living processes that were started for what lies in a directory: by their environment, command or place. */
export function processesOf(
  directory: string,
): readonly { readonly pid: number; readonly command: string }[] {
  if (!seesProcesses) return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      const told = [fileOf(pid, 'environ'), fileOf(pid, 'cmdline'), linkOf(pid, 'cwd')];
      return told.some((text) => text.includes(directory)) && !isZombie(pid);
    })
    .map((pid) => ({ pid, command: fileOf(pid, 'cmdline').replaceAll('\0', ' ').trim() }));
}

/** Sends a signal; false where there is no such process any more. */
export function signal(pid: number, name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}
