import { finalJobStates, type JobRecord } from '../contracts/records.ts';
import type { EpochMs } from '../contracts/units.ts';
import {
  formatBytes,
  formatCount,
  formatDollars,
  formatDuration,
  formatTime,
  oneLine,
  plural,
} from './format.ts';
import { currentForecast, describeForecast, formatProbability } from './forecast-line.ts';
import type { Style } from './style.ts';
import { renderTable } from './table.ts';

/** One line per stage: operator, tasks, time from first launch to last end, bytes and records in and out. */
export function renderStages(job: JobRecord, style: Style): readonly string[] {
  return renderTable(
    [
      { heading: 'STAGE', align: 'left' },
      { heading: 'OPERATOR', align: 'left' },
      { heading: 'TASKS', align: 'right' },
      { heading: 'TIME', align: 'right' },
      { heading: 'BYTES IN', align: 'right' },
      { heading: 'BYTES OUT', align: 'right' },
      { heading: 'RECORDS IN', align: 'right' },
      { heading: 'RECORDS OUT', align: 'right' },
    ],
    job.stages.map((stage) => [
      stage.name,
      stage.operator,
      stage.done === stage.tasks
        ? formatCount(stage.tasks)
        : `${formatCount(stage.done)}/${formatCount(stage.tasks)}`,
      formatDuration(spanMs(stage.startedAt, stage.endedAt)),
      formatBytes(stage.bytesIn),
      formatBytes(stage.bytesOut),
      formatCount(stage.recordsIn),
      formatCount(stage.recordsOut),
    ]),
    style.heading,
    style.columns,
  );
}

/** Where the output of a job is or will be; undefined where it has ended and none was published. */
export const outputOf = ({ state, output }: Pick<JobRecord, 'state' | 'output'>): string | undefined =>
  state === 'failed' || state === 'cancelled' ? undefined : output;

/** What a job was and cost: state, its stages, attempts, counters, deadline, output. */
export function renderJob(job: JobRecord, output: string | undefined, style: Style): readonly string[] {
  const lines = [
    `${style.heading(job.jobId)} ${paintState(job, style)}${wallText(job)}`,
    '',
    ...(job.stages.length === 0
      ? [finalJobStates.includes(job.state) ? 'it ended before it was planned' : 'not planned yet']
      : renderStages(job, style)),
    '',
    `attempts  ${describeAttempts(job)}`,
    ...describeCopies(job),
    `cost      ${describeCost(job)}`,
    ...describeBudget(job, style),
    ...describeRequests(job),
  ];
  const counters = Object.entries(job.counters).filter(([, value]) => value !== 0);
  if (counters.length > 0) {
    const texts = counters.map(([name, value]) => `${oneLine(name)} ${formatCount(value)}`);
    lines.push(`counters  ${texts.join(', ')}`);
  }
  if (job.deadlineAt !== undefined) lines.push(`deadline  ${describeDeadline(job, style)}`);
  const forecast = describeForecast(job);
  if (forecast !== undefined) lines.push(`forecast  ${forecast}`);
  const { guaranteedSlots } = job.spec;
  if (guaranteedSlots !== undefined)
    lines.push(
      `slots     ${formatCount(job.guaranteedSlots ?? 0)} of ${formatCount(guaranteedSlots)} guaranteed`,
    );
  if (output !== undefined) lines.push(`output    ${output}`);
  if (job.error !== undefined) lines.push(`error     ${style.bad(oneLine(job.error.message))}`);
  return lines;
}

/**
 * One line per job, in the order given; one that goes on has taken until `now`. With what those are expected to come to
 * that go on, where anything is known of that.
 */
export function renderJobs(jobs: readonly JobRecord[], now: EpochMs, style: Style): readonly string[] {
  const areForecast = jobs.some((job) => currentForecast(job) !== undefined);
  return renderTable(
    [
      { heading: 'JOB', align: 'left' },
      { heading: 'STATE', align: 'left' },
      { heading: 'CREATED', align: 'left' },
      { heading: 'TIME', align: 'right' },
      { heading: 'TASKS', align: 'right' },
      { heading: 'COST', align: 'right' },
      ...(areForecast ? forecastColumns : []),
    ],
    jobs.map((job) => [
      job.jobId,
      job.state,
      formatTime(job.createdAt),
      formatDuration(spanMs(job.createdAt, job.endedAt ?? now)),
      `${formatCount(sum(job, 'done'))}/${formatCount(sum(job, 'tasks'))}`,
      formatDollars(job.dollars),
      ...(areForecast ? forecastCells(job) : []),
    ]),
    style.heading,
    style.columns,
  );
}

const forecastColumns = [
  { heading: 'EXPECTED END', align: 'left' },
  { heading: 'P(DEADLINE)', align: 'right' },
] as const;

function forecastCells(job: JobRecord): readonly string[] {
  const forecast = currentForecast(job);
  const probability = job.deadlineAt === undefined ? undefined : forecast?.probability;
  return [formatTime(forecast?.expectedEndAt), formatProbability(probability)];
}

/** Whether the job ended by its deadline; undefined while it may still do so, or where it has none. */
export function deadlineMet(job: Pick<JobRecord, 'deadlineAt' | 'endedAt' | 'state'>): boolean | undefined {
  if (job.deadlineAt === undefined || job.endedAt === undefined) return undefined;
  return job.state === 'succeeded' && job.endedAt <= job.deadlineAt;
}

function describeAttempts(job: JobRecord): string {
  const { launched, ...others } = job.attempts;
  const extra = Object.entries(others)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${formatCount(count)} ${name}`);
  return [plural(launched, 'attempt').replace(/ attempts?$/, ' launched'), ...extra].join(', ');
}

/** What was copied lest it be lost; `outrider logs` tells of each why. */
function describeCopies({ copies }: JobRecord): readonly string[] {
  if (copies === undefined) return [];
  const { outputs, bytes, tokens } = copies;
  return [
    `copies    ${plural(outputs, 'output')} copied lest they be lost: ${formatBytes(bytes)}, of ${formatBytes(tokens)} that may be`,
  ];
}

function describeCost({ dollars, costs, workerMs }: JobRecord): string {
  const total = `${formatDollars(dollars)} estimated, ${formatDuration(workerMs)} of workers`;
  if (costs === undefined) return total;
  const parts = (['compute', 'records', 'storage', 'coordination'] as const).map(
    (part) => `${part} ${formatDollars(costs[part])}`,
  );
  return `${total} (${parts.join(', ')})`;
}

/** What the job may cost: with one attempt of each task it may cost more all the same. */
function describeBudget({ dollars, spec: { budget } }: JobRecord, style: Style): readonly string[] {
  if (budget === undefined) return [];
  return [`budget    ${formatDollars(budget)}${dollars > budget ? ` ${style.bad('exceeded')}` : ''}`];
}

/** What was asked for, where somebody counted; what nobody told makes it a lower bound. */
function describeRequests({ requests }: JobRecord): readonly string[] {
  if (requests === undefined) return [];
  const { dynamodb, s3, lambda, states, uncounted } = requests;
  const counts = [
    `DynamoDB ${formatCount(dynamodb.writeUnits)} write and ${formatCount(Math.ceil(dynamodb.readUnits))} read units`,
    `S3 ${formatCount(s3.put)} PUT, ${formatCount(s3.get)} GET, ${formatCount(s3.list)} LIST`,
    plural(lambda, 'invocation'),
    plural(states, 'transition'),
  ];
  const bound = uncounted === 0 ? '' : `; at least, since ${plural(uncounted, 'attempt')} died untold`;
  return [`requests  ${counts.join('; ')}${bound}`];
}

function describeDeadline(job: JobRecord, style: Style): string {
  const at = formatTime(job.deadlineAt);
  const isMet = deadlineMet(job);
  if (isMet === undefined) return at;
  // What ended badly in time has missed more than its deadline.
  if (!isMet && job.endedAt !== undefined && job.deadlineAt !== undefined && job.endedAt <= job.deadlineAt)
    return `${at} not met: the job ${job.state === 'failed' ? 'failed' : 'was cancelled'} before it`;
  return isMet ? `${at} ${style.good('met')}` : `${at} ${style.bad('missed')}`;
}

/** Whether all schedulers were full when it asked for one, and none has taken it on since. */
const waitsForScheduler = ({ state, waitingSince, scheduledAt }: JobRecord): boolean =>
  state === 'running' && waitingSince !== undefined && (scheduledAt ?? 0) < waitingSince;

function paintState(job: JobRecord, style: Style): string {
  if (waitsForScheduler(job))
    return `${style.active(job.state)} (waiting for a scheduler since ${formatTime(job.waitingSince)})`;
  if (job.state === 'succeeded') return style.good(job.state);
  return job.state === 'failed' || job.state === 'cancelled' ? style.bad(job.state) : style.active(job.state);
}

function wallText(job: JobRecord): string {
  const wallMs = spanMs(job.createdAt, job.endedAt);
  return wallMs === undefined ? '' : ` in ${formatDuration(wallMs)}`;
}

const spanMs = (from: number | undefined, to: number | undefined): number | undefined =>
  from === undefined || to === undefined ? undefined : Math.max(0, to - from);

const sum = (job: JobRecord, field: 'done' | 'tasks'): number =>
  job.stages.reduce((total, stage) => total + stage[field], 0);
