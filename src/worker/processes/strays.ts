import { readdir, readFile, readlink, realpath } from 'node:fs/promises';

/** Rounds over all processes: what is found may have started more before it was killed. */
const mostRounds = 10;

/** What processes of one attempt are known by. */
export interface Traces {
  /** Text in the environment that they inherit. */
  readonly mark: string;
  /** The attempt's own directory, where they work unless they leave it. */
  readonly directory: string;
}

/**
 * Kills processes that have left the group of the program that started them (by `setsid`), as far as they can be told:
 * by the environment that they inherited or by where they work. Linux only; elsewhere does nothing. A process that has
 * thrown off both is not found.
 */
export async function endStrays({ mark, directory }: Traces): Promise<void> {
  if (process.platform !== 'linux') return;
  const traces = { mark, directory: await realpath(directory).catch(() => directory) };
  for (let round = 0; round < mostRounds; round++) {
    const found = await straysOf(traces);
    if (found.length === 0) return;
    for (const pid of found) {
      // Its group, should it lead one: its children may have thrown off the traces.
      signal(-pid);
      signal(pid);
    }
  }
}

async function straysOf({ mark, directory }: Traces): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  const found: number[] = [];
  for (const name of names) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid) continue;
    const workplace = `${await workplaceOf(name)}/`;
    if (workplace.startsWith(`${directory}/`) || (await environmentOf(name)).includes(mark)) found.push(pid);
  }
  return found;
}

const nothing = Buffer.alloc(0);
/** Empty where the process is gone, a zombie, or another user's. */
const environmentOf = (pid: string): Promise<Buffer> => readFile(`/proc/${pid}/environ`).catch(() => nothing);
const workplaceOf = (pid: string): Promise<string> => readlink(`/proc/${pid}/cwd`).catch(() => '');

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone already, or no leader of a group.
  }
}
