import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CsvRecordParser } from '../../../src/worker/csv-record.ts';

const cell = fc
  .array(fc.constantFrom('a', '"', ',', '\n', '\r\n', ' ', 'é'), { maxLength: 8 })
  .map((parts) => parts.join(''));
/** As a writer of CSV writes it: quoted where it must be, and sometimes where it need not. */
const quoted = fc
  .tuple(cell, fc.boolean())
  .map(([text, always]) => (always || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text));
const table = fc.tuple(
  fc.array(
    fc.tuple(quoted, quoted, quoted).map((cells) => cells.join(',')),
    { minLength: 1, maxLength: 8 },
  ),
  fc.constantFrom('\n', '\r\n'),
);

describe('CsvRecordParser', () => {
  it('gives what csv-parse gives for well-formed text', () => {
    fc.assert(
      fc.property(table, ([lines, lineEnd]) => {
        const text = lines.join(lineEnd);
        const parser = new CsvRecordParser();
        const records = text.split('\n').flatMap((line) => {
          const outcome = parser.push(line);
          expect(outcome.kind).not.toBe('bad');
          return outcome.kind === 'record' ? [[...outcome.fields]] : [];
        });
        expect(parser.isOpen).toBe(false);
        expect(records).toEqual(parse(text, { record_delimiter: lineEnd }));
      }),
    );
  });
});
