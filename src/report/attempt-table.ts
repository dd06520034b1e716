import type { AttemptRecord } from '../contracts/records.ts';
import type { EpochMs } from '../contracts/units.ts';
import { isGivenUp } from './explain/attempt-runs.ts';
import { formatBytes, formatDuration, oneLine, shortNode } from './format.ts';
import type { Style } from './style.ts';
import { renderTable } from './table.ts';

/** How long an attempt has worked, by its worker's clock where it has ended; undefined where it never began. */
function workedMs(attempt: AttemptRecord, now: EpochMs): number | undefined {
  const { claimedAt, endedAt, reportedAt, state } = attempt;
  if (claimedAt === undefined) return undefined;
  const ended = isGivenUp(attempt) ? undefined : endedAt;
  const until = ended ?? (state === 'running' ? now : reportedAt);
  return until === undefined ? undefined : Math.max(0, until - claimedAt);
}

/** The time of day, UTC, at which its worker took it up. */
const startText = ({ claimedAt }: AttemptRecord): string =>
  claimedAt === undefined ? '-' : new Date(claimedAt).toISOString().slice(11, 19);

/** From launch to claim: the wait in the host's queue and the start of its environment. */
const waitedMs = ({ launchedAt, claimedAt }: AttemptRecord): number | undefined =>
  claimedAt === undefined ? undefined : Math.max(0, claimedAt - launchedAt);

const phases = ['init', 'read', 'compute', 'write'] as const;

const phaseText = ({ progress }: AttemptRecord): string =>
  progress === undefined ? '-' : phases.map((phase) => formatDuration(progress.phaseMs[phase])).join(' ');

function endText(attempt: AttemptRecord): string {
  const { failure, state, order, claimedAt } = attempt;
  if (failure !== undefined) return oneLine(`${failure.cause}: ${failure.message}`);
  if (isGivenUp(attempt))
    return claimedAt === undefined ? 'no worker took it up' : 'its worker stopped reporting';
  return state !== 'cancelled' && order === 'cancel' ? 'told to stop' : '';
}

/**
 * One line per attempt, the longest first and those that never began last: its state, how long it waited and worked
 * and in which phases, how much it read and held in memory, where it ran, when it began (UTC), and why it ended.
 */
export function renderAttempts(
  attempts: readonly AttemptRecord[],
  now: EpochMs,
  style: Style,
): readonly string[] {
  const sorted = attempts
    .map((attempt) => ({ attempt, ms: workedMs(attempt, now) }))
    .toSorted((a, b) => (b.ms ?? -1) - (a.ms ?? -1));
  return renderTable(
    [
      { heading: 'ATTEMPT', align: 'left' },
      { heading: 'STATE', align: 'left' },
      { heading: 'WAITED', align: 'right' },
      { heading: 'TIME', align: 'right' },
      { heading: 'INIT READ COMPUTE WRITE', align: 'right' },
      { heading: 'BYTES READ', align: 'right' },
      { heading: 'MEMORY', align: 'right' },
      { heading: 'NODE', align: 'left' },
      { heading: 'ZONE', align: 'left' },
      { heading: 'STARTED', align: 'left' },
      { heading: 'WHY', align: 'left' },
    ],
    sorted.map(({ attempt, ms }) => {
      const { attemptId, state, progress, zone } = attempt;
      const memory = progress?.peakMemoryBytes ?? 0;
      return [
        oneLine(attemptId),
        state,
        formatDuration(waitedMs(attempt)),
        formatDuration(ms),
        phaseText(attempt),
        progress === undefined ? '-' : formatBytes(progress.bytesRead),
        memory === 0 ? '-' : formatBytes(memory),
        shortNode(attempt.node),
        oneLine(zone ?? '-'),
        startText(attempt),
        endText(attempt),
      ];
    }),
    style.heading,
    style.columns,
  );
}
