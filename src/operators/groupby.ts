import { BadRecordError } from '../worker/operator.ts';
import type { Combine, Operator, Row } from '../worker/operator.ts';
import { forEachRow } from '../worker/row-places.ts';
import { addValue, mergePartial, noValues, resultOf } from './aggregates.ts';
import type { Partial } from './aggregates.ts';
import { csvLine, csvValue } from './csv-text.ts';
import { groupbyOptions, rowOutputNames, rowOutputOptions } from './groupby-options.ts';
import type { Aggregate } from './groupby-options.ts';
import { cellOf } from './rows.ts';

/** Groups that a task holds before it emits them; what comes later is a group anew, and combined downstream. */
const maxGroups = 50_000;
const maxKeyBytes = 16 * 1024 * 1024;

/**
 * Groups rows by the columns of `key` and emits (JSON list of the key's values, JSON of the partial aggregates).
 * Equal are keys of equal JSON: null is a group of its own, and 1 is not "1".
 */
export const groupbyMap: Operator = {
  check(options) {
    groupbyOptions(options);
  },
  combiner(options) {
    return combinePartials(groupbyOptions(options).aggregates);
  },
  async run({ inputs, output, options }) {
    const { key, aggregates } = groupbyOptions(options);
    const groups = new Map<string, Partial[]>();
    let keyBytes = 0;
    const flush = async (): Promise<void> => {
      for (const [group, partials] of groups) {
        const wait = output.emit(Buffer.from(group), Buffer.from(JSON.stringify(partials)));
        if (wait !== undefined) await wait;
      }
      groups.clear();
      keyBytes = 0;
    };
    for (const input of inputs) {
      await forEachRow(input, (row) => {
        const group = JSON.stringify(key.map((column) => cellOf(row, column, input.format) ?? null));
        let partials = groups.get(group);
        if (partials === undefined) {
          partials = aggregates.map(noValues);
          groups.set(group, partials);
          keyBytes += 2 * group.length;
        }
        addRow(partials, aggregates, row, input.format);
        return groups.size >= maxGroups || keyBytes > maxKeyBytes ? flush() : undefined;
      });
    }
    await flush();
  },
};

function addRow(
  partials: readonly Partial[],
  aggregates: readonly Aggregate[],
  row: Row,
  format: string,
): void {
  aggregates.forEach(({ op, column }, at) => {
    const partial = partials[at];
    if (partial === undefined) return;
    if (column === undefined) partial.count++;
    else addValue(partial, op, cellOf(row, column, format), column);
  });
}

const combinePartials =
  (aggregates: readonly Aggregate[]): Combine =>
  (left, right) => {
    const partials = decodePartials(left, aggregates);
    mergeAll(partials, decodePartials(right, aggregates), aggregates);
    return Buffer.from(JSON.stringify(partials));
  };

function mergeAll(
  into: readonly Partial[],
  from: readonly Partial[],
  aggregates: readonly Aggregate[],
): void {
  aggregates.forEach(({ op }, at) => {
    const [left, right] = [into[at], from[at]];
    if (left !== undefined && right !== undefined) mergePartial(left, op, right);
  });
}

/** Trusts what groupby-map wrote: checksums guard it on its way. */
function decodePartials(value: Buffer, aggregates: readonly Aggregate[]): Partial[] {
  const partials: unknown = JSON.parse(value.toString());
  if (!Array.isArray(partials) || partials.length !== aggregates.length) {
    throw new BadRecordError('groupby-reduce reads the output of groupby-map with the same options');
  }
  return partials as Partial[];
}

/**
 * Merges the partial aggregates of each key and writes a row for each: the key's columns, then the aggregates.
 * Rows are in byte order of the key's JSON. CSV has a header in the first part only, so that the parts laid end
 * to end are one CSV file.
 */
export const groupbyReduce: Operator = {
  check(options) {
    groupbyOptions(options, rowOutputNames);
    rowOutputOptions(options);
  },
  async run({ inputs, output, options, task }) {
    const { key: columns, aggregates } = groupbyOptions(options, rowOutputNames);
    const form = rowOutputOptions(options);
    const names = [...columns, ...aggregates.map(({ name }) => name)];
    if (form.output === 'csv' && form.header && task === 0) await output.write(Buffer.from(csvLine(names)));

    const write = (group: Buffer, partials: readonly Partial[]): Promise<void> | undefined => {
      const values = JSON.parse(group.toString()) as unknown[];
      const results = aggregates.map(({ op }, at) => resultOf(partials[at] ?? noValues(), op));
      const line =
        form.output === 'csv'
          ? csvLine([...values.map(csvValue), ...results.map((result) => result ?? '')])
          : jsonLine(names, [
              ...values.map((value) => JSON.stringify(value)),
              ...results.map((text) => text ?? 'null'),
            ]);
      return output.write(Buffer.from(line));
    };
    for (const input of inputs) {
      let current: { key: Buffer; partials: Partial[] } | undefined;
      for await (const batch of input.records()) {
        for (const { key, value } of batch) {
          const partials = decodePartials(value, aggregates);
          if (current?.key.equals(key) === true) {
            mergeAll(current.partials, partials, aggregates);
            continue;
          }
          if (current !== undefined) await write(current.key, current.partials);
          current = { key: Buffer.from(key), partials };
        }
      }
      if (current !== undefined) await write(current.key, current.partials);
    }
  },
};

/** An NDJSON line of fields whose values are JSON already: whole numbers keep all their digits. */
const jsonLine = (names: readonly string[], values: readonly string[]): string =>
  `{${names.map((name, at) => `${JSON.stringify(name)}:${values[at] ?? 'null'}`).join(',')}}\n`;
