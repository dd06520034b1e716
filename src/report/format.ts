/** A length of time for people: `0.4s`, `12.3s`, `4m05s`, `2h07m`; `-` where it is unknown. */
export function formatDuration(ms: number | undefined): string {
  if (ms === undefined) return '-';
  const tenths = Math.round(ms / 100);
  if (tenths < 600) return `${(tenths / 10).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${String(Math.floor(seconds / 60))}m${pad2(seconds % 60)}s`;
  const minutes = Math.round(ms / 60_000);
  return `${String(Math.floor(minutes / 60))}h${pad2(minutes % 60)}m`;
}

const pad2 = (value: number): string => String(value).padStart(2, '0');

const byteUnits = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Bytes for people: `512 B`, `1.5 KiB`, `10.3 MiB`. Powers of 1,024; never below zero. */
export function formatBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  if (value < 1_024) return `${String(Math.round(value))} B`;
  let unit: string = byteUnits[0];
  for (const next of byteUnits) {
    unit = next;
    value /= 1_024;
    if (value < 1_023.95) break;
  }
  return `${value.toFixed(1)} ${unit}`;
}

/** A whole number with commas between thousands, whatever the locale of the machine: `1,234,567`. */
export function formatCount(count: number): string {
  const digits = String(Math.abs(Math.trunc(count))).replace(/\B(?=(?:\d{3})+$)/g, ',');
  return count < 0 ? `-${digits}` : digits;
}

/** Dollars with as many digits as tell small jobs apart: `$0.000042`, `$0.0123`, `$1.50`. */
export function formatDollars(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars < 0.0000005) return '<$0.000001';
  return `$${dollars.toFixed(dollars < 0.01 ? 6 : dollars < 1 ? 4 : 2)}`;
}

/** A point in time as `2026-01-31 23:59:59Z`, the same on every machine; `-` where it is unknown. */
export function formatTime(epochMs: number | undefined): string {
  if (epochMs === undefined) return '-';
  return `${new Date(epochMs).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** `1 task`, `2 tasks`; `many` where that is not the noun with an "s". */
export const plural = (count: number, noun: string, many = `${noun}s`): string =>
  `${formatCount(count)} ${count === 1 ? noun : many}`;

// What moves a terminal's cursor or breaks a line must not come from data: C0, DEL and C1.
const controlCharacters = /\p{Cc}+/gu;

/** Text from outside on one line: runs of control characters become one space; cut at `limit` characters. */
export function oneLine(text: string, limit = 2_000): string {
  const clean = text.replace(controlCharacters, ' ').trim();
  return clean.length > limit ? `${clean.slice(0, limit - 1)}…` : clean;
}

const shownNodeChars = 12;

/** What tells execution environments apart: the end of a log stream's name or of a task's ARN; `-` where it is unknown. */
export const shortNode = (node: string | undefined): string =>
  node === undefined
    ? '-'
    : oneLine(node.slice(Math.max(node.lastIndexOf('/'), node.lastIndexOf(']')) + 1), shownNodeChars);
