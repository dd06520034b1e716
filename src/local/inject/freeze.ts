import { StoppedGroups } from './stopped-groups.ts';

/** Stops a process group once, all of it, and lets it go on after a while. */
export class Freeze {
  private readonly groups: StoppedGroups;
  private readonly timer: NodeJS.Timeout;

  constructor(pid: number, ms: number) {
    this.groups = new StoppedGroups(pid);
    this.groups.stop();
    this.timer = setTimeout(() => {
      this.groups.proceed();
    }, ms);
  }

  /** Lets the group go on at once. */
  end(): void {
    clearTimeout(this.timer);
    this.groups.proceed();
  }
}
