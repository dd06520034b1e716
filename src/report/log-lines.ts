import type { LogLine } from '../ports/log-reader.ts';
import { oneLine } from './format.ts';
import type { Style } from './style.ts';

/** Levels of lines, least first. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

/** A line as people and programs want it: what the system wrote as JSON is taken apart. */
export interface LogEvent {
  readonly at: number;
  /** Execution environment that logged it. */
  readonly source: string;
  readonly level: LogLevel;
  /** `user-output` for what user code and programs print; absent where the line is no event. */
  readonly event?: string;
  /** Job, stage, task (`stage/index`) or attempt (`stage/index/number`) that it is about. */
  readonly about?: string;
  /** What was printed, or the whole line where it is no event. */
  readonly text?: string;
  /** Where user code printed it. */
  readonly stream?: 'stdout' | 'stderr';
  /** All else that the event tells. */
  readonly facts: Readonly<Record<string, unknown>>;
}

const shownElsewhere: ReadonlySet<string> = new Set([
  'at',
  'level',
  'event',
  'jobId',
  'attemptId',
  'taskId',
  'task',
  'stage',
  'stream',
  'text',
]);

/** What a line of a job's log says. Never throws: what cannot be read is text. */
export function readLogLine({ at, source, text }: LogLine): LogEvent {
  const found = parsed(text);
  if (found === undefined) return { at, source, level: 'info', text, facts: {} };
  const about = aboutOf(found);
  const { stream, text: said } = found;
  return {
    at: timeOf(found['at']) ?? at,
    source,
    level: levelOf(found),
    event: String(found['event']),
    ...(about === undefined ? {} : { about }),
    ...(typeof said === 'string' ? { text: said } : {}),
    ...(stream === 'stdout' || stream === 'stderr' ? { stream } : {}),
    facts: Object.fromEntries(Object.entries(found).filter(([name]) => !shownElsewhere.has(name))),
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('event' in value)) return undefined;
    return value;
  } catch {
    return undefined;
  }
}

const timeOf = (text: unknown): number | undefined => {
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
};

/** An attempt that failed is an error, whoever tells of it; what is said on standard error is a warning. */
function levelOf({ level, event, stream, failure, outcome }: Readonly<Record<string, unknown>>): LogLevel {
  if (failure !== undefined || outcome === 'failed') return 'error';
  const known = logLevels.find((each) => each === level);
  if (event === 'user-output' && stream === 'stderr' && (known ?? 'info') === 'info') return 'warn';
  return known ?? 'info';
}

function aboutOf({ attemptId, taskId, task, stage }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof attemptId === 'string') return attemptId;
  if (typeof taskId === 'string') return taskId;
  if (typeof task === 'string') return task;
  if (typeof stage === 'string') return typeof task === 'number' ? `${stage}/${String(task)}` : stage;
  return undefined;
}

/** Whether a line is at least of a level. */
export const isAtLeast = ({ level }: LogEvent, least: LogLevel): boolean =>
  logLevels.indexOf(level) >= logLevels.indexOf(least);

/** Whether a line is about a stage, task or attempt, or names it among its facts. */
export function isAbout({ about, facts, text }: LogEvent, wanted: string): boolean {
  if (about !== undefined) return `${about}/`.startsWith(`${wanted}/`);
  const named = new RegExp(`(?<![\\w/-])${wanted}(?![\\w-])`);
  return named.test(JSON.stringify(facts)) || (text !== undefined && named.test(text));
}

const longestText = 10_000;

/** One line for people: the time of day, how bad it is where it is bad, what it is about, and what it says. */
export function renderLogEvent(event: LogEvent, style: Style): string {
  const time = style.dim(new Date(event.at).toISOString().slice(11, 23));
  const about = event.about === undefined ? '' : `${style.heading(oneLine(event.about))} `;
  return `${time} ${about}${paint(event, oneLine(said(event), longestText), style)}`;
}

function paint({ level }: LogEvent, text: string, style: Style): string {
  if (level === 'error') return style.bad(`error: ${text}`);
  return level === 'warn' ? style.active(text) : text;
}

function said({ event, text, stream, facts, level }: LogEvent): string {
  if (event === 'user-output') {
    const head = stream === 'stderr' ? '!' : '|';
    return `${head} ${text ?? ''}`;
  }
  const { failure, outcome, ...others } = facts;
  const told = level === 'error' && isFailure(failure) ? [`${failure.cause}: ${failure.message}`] : [];
  const rest = Object.entries(outcome === undefined ? others : { outcome, ...others }).map(
    ([name, value]) => `${name} ${valueText(value)}`,
  );
  return [
    (event ?? '').replaceAll('-', ' '),
    ...told,
    rest.join(', '),
    event === undefined ? (text ?? '') : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
}

const isFailure = (value: unknown): value is { readonly cause: string; readonly message: string } =>
  typeof value === 'object' &&
  value !== null &&
  'cause' in value &&
  'message' in value &&
  typeof value.cause === 'string' &&
  typeof value.message === 'string';

const decimals = 1_000;

function valueText(value: unknown): string {
  if (typeof value === 'number') return String(Math.round(value * decimals) / decimals);
  return typeof value === 'string' ? value : JSON.stringify(value);
}
