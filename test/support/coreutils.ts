import { spawnSync } from 'node:child_process';

/** What a program of coreutils makes of `input`, in the C locale: an oracle that shares no code with ours. */
export function coreutils(command: string, args: readonly string[], input?: Buffer, cwd?: string): Buffer {
  const result = spawnSync(command, args, {
    ...(input === undefined ? {} : { input }),
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    maxBuffer: 512 * 1024 * 1024,
  });
  if (result.error !== undefined) throw result.error;
  if (result.status !== 0 && !(command === 'grep' && result.status === 1)) {
    throw new Error(`${command} ended with ${String(result.status)}: ${result.stderr.toString()}`);
  }
  return result.stdout;
}

/** `word<TAB>count` lines in order of words, of texts laid end to end as separate files. */
export function countWords(texts: readonly Buffer[]): string {
  const separated = Buffer.concat(texts.flatMap((text) => [text, Buffer.from('\n')]));
  const words = coreutils('tr', ['-s', '[:space:]', '\\n'], separated);
  const counted = coreutils('uniq', ['-c'], coreutils('sort', [], words)).toString('latin1');
  return counted
    .replace(/^ *(\d+) (.*)$/gm, (_, count: string, word: string) => `${word}\t${count}`)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('\t'))
    .map((line) => `${line}\n`)
    .join('');
}
