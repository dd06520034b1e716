import { durationMs, elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { emptySorted, insertSorted } from '../../lib/sorted-numbers.ts';
import type { AttemptView, NodeView, ProgressReport, StageStatistics, Tally, TaskView } from './job-view.ts';

/** Reports kept of one attempt: the newest in full, older ones thinned out. */
const reportLimit = 24;
const recentLimit = 32;
const nodeSampleLimit = 3;

/** A stage of which nothing has finished. */
export const createStageStatistics = (): StageStatistics => ({
  runMs: emptySorted(),
  sinceLaunchMs: emptySorted(),
  msPerByte: emptySorted(),
  readBytes: 0,
  lag: { sumMs: 0, count: 0 },
  wrapUp: { sumMs: 0, count: 0 },
  recent: [],
});

/** The mean of a tally; 0 of nothing. */
export const meanMs = ({ sumMs, count }: Tally): number => (count === 0 ? 0 : sumMs / count);

/** Bytes by which a task's time is measured: never 0. */
export const workBytes = (task: TaskView): number => Math.max(1, task.inputBytes);

/** Appends a report unless it repeats the last. Of a long history every second old report is dropped. */
export function keepReport(reports: ProgressReport[], report: ProgressReport): void {
  const last = reports.at(-1);
  if (last !== undefined && report.workedMs <= last.workedMs) return;
  reports.push(report);
  if (reports.length <= reportLimit) return;
  const kept = reports.filter((_, index) => index % 2 === 0 || index >= reportLimit / 2);
  reports.splice(0, reports.length, ...kept);
}

/** Counts how long a launch took to become a claim. Clocks differ, so that it is never beyond the time we waited. */
export function recordClaim(statistics: StageStatistics, attempt: AttemptView, now: EpochMs): void {
  if (attempt.claimedAt === undefined) return;
  const lagMs = Math.min(
    elapsedMs(attempt.launchedAt, attempt.claimedAt),
    elapsedMs(attempt.launchedAt, now),
  );
  statistics.lag.sumMs += lagMs;
  statistics.lag.count += 1;
}

function nodeOf(nodes: Map<string, NodeView>, id: string): NodeView {
  const known = nodes.get(id);
  if (known !== undefined) return known;
  const node: NodeView = { id, finished: 0, recent: [] };
  nodes.set(id, node);
  return node;
}

/** Notes that a node exists, once an attempt tells where it runs. */
export function recordNode(nodes: Map<string, NodeView>, attempt: AttemptView): void {
  if (attempt.node === undefined) return;
  const node = nodeOf(nodes, attempt.node);
  if (attempt.zone !== undefined) node.zone = attempt.zone;
}

/** Takes the winning attempt of a task into account; call it once per task. */
export function recordFinish(
  statistics: StageStatistics,
  nodes: Map<string, NodeView>,
  task: TaskView,
  attempt: AttemptView,
): void {
  if (attempt.claimedAt === undefined || attempt.endedAt === undefined) return;
  const runMs = elapsedMs(attempt.claimedAt, attempt.endedAt);
  // The worker's clock may be ahead of the one that launched it: then not beyond when its end was seen.
  const endedAt = Math.min(attempt.endedAt, attempt.seenAt) as EpochMs;
  insertSorted(statistics.runMs, runMs);
  insertSorted(statistics.sinceLaunchMs, Math.max(runMs, elapsedMs(attempt.launchedAt, endedAt)));
  insertSorted(statistics.msPerByte, runMs / workBytes(task));
  statistics.readBytes += workBytes(task);
  const total = attempt.progress?.bytesTotal ?? 0;
  const allRead = attempt.reports.find(({ bytesRead }) => total > 0 && bytesRead >= total);
  if (allRead !== undefined) {
    statistics.wrapUp.sumMs += durationMs(runMs - allRead.workedMs);
    statistics.wrapUp.count += 1;
  }
  statistics.recent.push(attempt);
  if (statistics.recent.length > recentLimit) statistics.recent.shift();
  if (attempt.node === undefined) return;
  const node = nodeOf(nodes, attempt.node);
  node.finished += 1;
  node.recent.push({ stage: attempt.stage, msPerByte: runMs / workBytes(task) });
  if (node.recent.length > nodeSampleLimit) node.recent.shift();
}
