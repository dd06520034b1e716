import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { withoutInherited } from './inherited-files.ts';

/**
 * Reads "+ GROUP MARK" and "- GROUP MARK" lines; when they end, since the worker is gone, it kills the groups that
 * are left, and on Linux whatever carries their marks in its environment, in a few rounds.
 */
const script = `
live=
while read -r sign group mark; do
  case $sign in
    +) live="$live $group:$mark" ;;
    -)
      rest=
      for one in $live; do [ "$one" = "$group:$mark" ] || rest="$rest $one"; done
      live=$rest
      ;;
  esac
done
for one in $live; do kill -s KILL -- "-\${one%%:*}"; done
for one in $live; do
  for round in 1 2 3; do
    found=
    for file in $(grep -ls -- "\${one#*:}" /proc/[0-9]*/environ); do
      pid=\${file#/proc/}
      kill -s KILL -- "\${pid%/environ}" && found=1
    done
    [ -n "$found" ] || break
  done
done
`;

let reaper: ChildProcess | undefined;
const guarded = new Map<number, string>();

/**
 * Sees to it that a process group dies when this process does, however it dies: a process killed outright can end
 * nobody, so a small shell beside it waits for its pipe to break. Call `startReaper` before the group is started,
 * so that no time is lost between the two. The function that is returned lets the group go.
 */
export function guardGroup(group: number, mark: string): () => void {
  startReaper();
  guarded.set(group, mark);
  tell(`+ ${String(group)} ${mark}`);
  return () => {
    if (!guarded.delete(group)) return;
    tell(`- ${String(group)} ${mark}`);
  };
}

/** Starts the reaper if none runs. Where there is no shell, groups end with their attempts only. */
export function startReaper(): void {
  if (reaper !== undefined) return;
  // A group of its own: what ends the worker's group must not end it.
  const child = spawn('/bin/sh', ['-c', script], {
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
    detached: true,
    stdio: withoutInherited(['pipe', 'ignore', 'ignore']),
  });
  reaper = child;
  const forget = (): void => {
    if (reaper === child) reaper = undefined;
  };
  child.once('error', forget).once('exit', forget);
  child.stdin?.on('error', () => undefined);
  child.unref();
  if (child.stdin instanceof Socket) child.stdin.unref();
  for (const [group, mark] of guarded) tell(`+ ${String(group)} ${mark}`);
}

function tell(line: string): void {
  if (reaper?.stdin?.writable === true) reaper.stdin.write(`${line}\n`);
}
