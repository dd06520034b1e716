import { deadlineRequestSchema } from '../contracts/api.ts';
import { parseDurationText } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import { badInput } from './failures.ts';

const sizeUnits: Readonly<Record<string, number>> = { '': 1, k: 1_024, m: 1_024 ** 2, g: 1_024 ** 3 };

/** Bytes of `512`, `64k`, `32m`, `32MiB` or `1g` (powers of 1,024). Throws `InvalidInputError` on anything else. */
export function parseSize(option: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)([kmg]?)(?:i?b)?$/i.exec(text.trim());
  const unit = sizeUnits[(match?.[2] ?? '').toLowerCase()];
  const sizeBytes = match?.[1] === undefined || unit === undefined ? 0 : Math.round(Number(match[1]) * unit);
  if (sizeBytes < 1 || sizeBytes > limits.maxSplitBytes) {
    throw badInput(`${option} "${text}" must be a size from 1 byte to 4g, such as "64k" or "32m"`);
  }
  return sizeBytes;
}

/** A whole number in [min, max]. Throws `InvalidInputError` on anything else. */
export function parseWhole(option: string, text: string, min: number, max: number): number {
  const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) {
    throw badInput(`${option} "${text}" must be a whole number from ${String(min)} to ${String(max)}`);
  }
  return value;
}

/** The text of a deadline, checked. Throws `InvalidInputError` unless it is a length of time within the limits. */
export function checkDeadline(text: string): string {
  const ms = parseDurationText(text);
  if (ms === undefined || ms < limits.minDeadlineMs || ms > limits.maxDeadlineMs) {
    throw badInput(
      `--deadline "${text}" must be a length of time from 1s to 7d, such as "90s", "10m" or "2h"`,
    );
  }
  return text.trim();
}

/** What a job's deadline is changed to, checked. Throws `InvalidInputError` unless it is a time as the API takes it. */
export function checkDeadlineChange(text: string): string {
  const deadline = text.trim();
  const { success, error } = deadlineRequestSchema.safeParse({ deadline });
  if (!success) throw badInput(`<time> "${text}" ${error.issues[0]?.message ?? 'is no deadline'}`);
  return deadline;
}

/** Dollars of a budget, with or without a "$". Throws `InvalidInputError` unless above 0 and within the limit. */
export function parseBudget(text: string): number {
  const match = /^\$?(\d+(?:\.\d+)?|\.\d+)$/.exec(text.trim());
  const dollars = match?.[1] === undefined ? 0 : Number(match[1]);
  if (dollars <= 0 || dollars > limits.maxBudgetDollars) {
    throw badInput(
      `--budget "${text}" must be dollars above 0 and at most ${String(limits.maxBudgetDollars)}`,
    );
  }
  return dollars;
}

/** A job's weight beside others'. Throws `InvalidInputError` unless it is a number within the limits. */
export function parseWeight(text: string): number {
  const weight = /^\d+(?:\.\d+)?$/.test(text.trim()) ? Number(text) : 0;
  if (weight < limits.leastWeight || weight > limits.weight) {
    throw badInput(
      `--weight "${text}" must be a number from ${String(limits.leastWeight)} to ${String(limits.weight)}`,
    );
  }
  return weight;
}
