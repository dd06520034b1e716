import { csvLine, csvValue } from '../worker/csv-text.ts';
import type { TaskOutput } from '../worker/operator.ts';
import { noValues, resultOf } from './aggregates.ts';
import type { Group } from './group-lines.ts';
import type { Aggregate, GroupbyOptions, RowOutputOptions } from './groupby-options.ts';

const writeChars = 128 * 1024;

/** Writes groups as rows. */
export class GroupWriter {
  readonly #output: TaskOutput;
  readonly #names: readonly string[];
  readonly #aggregates: readonly Aggregate[];
  readonly #isCsv: boolean;
  #text = '';
  #rows = 0;

  constructor(output: TaskOutput, { key, aggregates }: GroupbyOptions, { output: form }: RowOutputOptions) {
    this.#output = output;
    this.#names = [...key, ...aggregates.map(({ name }) => name)];
    this.#aggregates = aggregates;
    this.#isCsv = form === 'csv';
  }

  async header(): Promise<void> {
    await this.#output.write(Buffer.from(csvLine(this.#names)), 0);
  }

  /** Await what is returned. */
  write({ key, partials }: Group): Promise<void> | undefined {
    const values = JSON.parse(key) as unknown[];
    const results = this.#aggregates.map(({ op }, at) => resultOf(partials[at] ?? noValues(), op));
    this.#text += this.#isCsv
      ? csvLine([...values.map(csvValue), ...results.map((result) => result ?? '')])
      : jsonLine(this.#names, [
          ...values.map((value) => JSON.stringify(value)),
          ...results.map((text) => text ?? 'null'),
        ]);
    this.#rows++;
    return this.#text.length < writeChars ? undefined : this.flush();
  }

  /** Writes what is held; needed at the end. */
  async flush(): Promise<void> {
    const [text, rows] = [this.#text, this.#rows];
    [this.#text, this.#rows] = ['', 0];
    if (text !== '') await this.#output.write(Buffer.from(text), rows);
  }
}

/** An NDJSON line of fields whose values are JSON already: whole numbers keep all their digits. */
const jsonLine = (names: readonly string[], values: readonly string[]): string =>
  `{${names.map((name, at) => `${JSON.stringify(name)}:${values[at] ?? 'null'}`).join(',')}}\n`;
