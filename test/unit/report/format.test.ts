import { describe, expect, it } from 'vitest';
import {
  formatBytes,
  formatCount,
  formatDollars,
  formatDuration,
  formatTime,
  oneLine,
  plural,
} from '../../../src/report/format.ts';

describe('formats for people', () => {
  it.each([
    [0, '0.0s'],
    [49, '0.0s'],
    [12_340, '12.3s'],
    [59_940, '59.9s'],
    [59_960, '1m00s'],
    [245_000, '4m05s'],
    [3_599_400, '59m59s'],
    [7_620_000, '2h07m'],
    [undefined, '-'],
  ])('shows %s ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it.each([
    [0, '0 B'],
    [-5, '0 B'],
    [1_023, '1023 B'],
    [1_024, '1.0 KiB'],
    [1_536, '1.5 KiB'],
    [1_048_575, '1.0 MiB'],
    [10_761_413, '10.3 MiB'],
    [1_073_741_824, '1.0 GiB'],
    [2 ** 51, '2048.0 TiB'],
  ])('shows %s bytes as %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it.each([
    [0, '0'],
    [999, '999'],
    [1_000, '1,000'],
    [1_234_567, '1,234,567'],
    [-12_345, '-12,345'],
  ])('shows the count %s as %s', (count, text) => {
    expect(formatCount(count)).toBe(text);
  });

  it.each([
    [0, '$0'],
    [0.0000001, '<$0.000001'],
    [0.000042, '$0.000042'],
    [0.0123, '$0.0123'],
    [1.5, '$1.50'],
  ])('shows %s dollars as %s', (dollars, text) => {
    expect(formatDollars(dollars)).toBe(text);
  });

  it('shows times in UTC, whatever the zone of the machine', () => {
    expect(formatTime(1_769_903_999_000)).toBe('2026-01-31 23:59:59Z');
    expect(formatTime(undefined)).toBe('-');
  });

  it('puts an s after every number but one', () => {
    expect([plural(0, 'task'), plural(1, 'task'), plural(1_200, 'task')]).toEqual([
      '0 tasks',
      '1 task',
      '1,200 tasks',
    ]);
  });

  it('keeps control characters of data off the terminal, and cuts what is long', () => {
    expect(oneLine('a\r\nb\u001b[31mred\u009b')).toBe('a b [31mred');
    expect(oneLine('abcdef', 4)).toBe('abc…');
  });
});
