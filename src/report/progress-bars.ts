import type { JobRecord, StageSummary } from '../contracts/records.ts';
import { describeForecast, forecastMark } from './forecast-line.ts';
import { formatCount, formatDuration, plural } from './format.ts';
import type { Style } from './style.ts';

/** What is shown of a job while it runs. */
export type ProgressView = Pick<JobRecord, 'state' | 'createdAt' | 'stages' | 'forecast' | 'deadlineAt'>;

const widestBar = 40;
const narrowestBar = 5;

/** Lines of a terminal `columns` wide: one bar per stage, and one line for the job. */
export function renderBars(
  job: ProgressView,
  nowMs: number,
  columns: number,
  style: Style,
): readonly string[] {
  const nameWidth = Math.max(0, ...job.stages.map(({ name }) => name.length));
  const texts = job.stages.map(describeStage);
  const textWidth = Math.max(0, ...texts.map(({ length }) => length));
  // Two brackets, the percentage and four spaces; a line that wraps would break the redrawing.
  const room = columns - nameWidth - textWidth - 12;
  const width = Math.max(narrowestBar, Math.min(widestBar, room));
  const forecast = describeForecast(job);
  const time = `${job.state} ${formatDuration(Math.max(0, nowMs - job.createdAt))}`;
  const head = forecast === undefined ? time : `${time}, ${forecast}`;
  return [
    ...job.stages.map((stage, index) => {
      const percent = `${String(Math.floor(fractionOf(stage) * 100)).padStart(3)}%`;
      const bar = renderBar(fractionOf(stage), width);
      const line = cut(`${stage.name.padEnd(nameWidth)} ${bar} ${percent} ${texts[index] ?? ''}`, columns);
      return paint(stage, line, style);
    }),
    style.dim(cut(head, columns)),
  ];
}

/** A bar of `width` cells between brackets; `fraction` is cut to [0, 1]. */
export function renderBar(fraction: number, width: number): string {
  const full = Math.floor(Math.min(1, Math.max(0, fraction)) * width);
  return `[${'#'.repeat(full)}${'.'.repeat(width - full)}]`;
}

/**
 * Plain lines for where nothing can be redrawn: one per stage whose number of finished tasks has changed since
 * `before`, one when the job's state has, and one when its forecast is another. Empty where nothing has changed.
 */
export function renderChanges(before: ProgressView | undefined, now: ProgressView): readonly string[] {
  const lines: string[] = [];
  if (before?.state !== now.state) lines.push(`job ${now.state}`);
  for (const stage of now.stages) {
    const old = before?.stages.find(({ name }) => name === stage.name);
    const isChanged = old === undefined ? stage.done > 0 || stage.failed > 0 : isOther(old, stage);
    if (isChanged) lines.push(`${stage.name}: ${describeStage(stage)}`);
  }
  const forecast = describeForecast(now);
  if (forecast !== undefined && (before === undefined || forecastMark(before) !== forecastMark(now)))
    lines.push(`forecast: ${forecast}`);
  return lines;
}

const isOther = (old: StageSummary, stage: StageSummary): boolean =>
  old.done !== stage.done || old.failed !== stage.failed || old.tasks !== stage.tasks;

function describeStage(stage: StageSummary): string {
  const parts = [`${formatCount(stage.done)}/${plural(stage.tasks, 'task')}`];
  if (stage.running > 0) parts.push(`${formatCount(stage.running)} running`);
  if (stage.failed > 0) parts.push(`${formatCount(stage.failed)} failed`);
  return parts.join(', ');
}

/** A stage is full only when all its tasks are: estimates of running ones may run ahead. */
function fractionOf(stage: StageSummary): number {
  if (stage.tasks > 0 && stage.done >= stage.tasks) return 1;
  return Math.min(0.99, Math.max(0, stage.progress));
}

function paint(stage: StageSummary, line: string, style: Style): string {
  if (stage.tasks > 0 && stage.done >= stage.tasks) return style.good(line);
  return stage.running > 0 ? style.active(line) : line;
}

const cut = (line: string, columns: number): string =>
  line.length < columns ? line : line.slice(0, Math.max(0, columns - 1));
