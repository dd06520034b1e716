import { childrenOf } from '../lambda/process-children.ts';
import { signalGroup } from '../lambda/signal-group.ts';

/** The process group that `pid` leads, and those that its processes lead: stopped and continued together. */
export class StoppedGroups {
  private readonly pid: number;
  /** The groups that were stopped with it last. */
  private groups: readonly number[] = [];

  constructor(pid: number) {
    this.pid = pid;
  }

  /** Whether the group is still there. */
  stop(): boolean {
    if (!signalGroup(this.pid, 'SIGSTOP')) return false;
    // Stopped, it starts no more. What it has started in groups of their own is as slow as it is.
    this.groups = childrenOf(this.pid); // Those that lead a group can be signalled with it.
    for (const group of this.groups) signalGroup(group, 'SIGSTOP');
    return true;
  }

  /** Whether the group is still there. */
  proceed(): boolean {
    for (const group of this.groups) signalGroup(group, 'SIGCONT');
    this.groups = [];
    return signalGroup(this.pid, 'SIGCONT');
  }
}
