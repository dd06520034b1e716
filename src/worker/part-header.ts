import type { PlannedObject, SourceSegment } from '../contracts/plan.ts';
import { uriOf } from '../contracts/keys.ts';
import { columnsBefore, type CsvForm, CsvProblem } from './csv-rows.ts';
import type { SourceReading } from './object-ranges.ts';

/** Reads the headers of the parts that have them for others, each once. */
export class PartHeaders {
  readonly #form: Omit<CsvForm, 'bad'>;
  readonly #found = new Map<string, readonly string[] | undefined>();

  constructor(form: Omit<CsvForm, 'bad'>) {
    this.#form = form;
  }

  /**
   * The columns that another object names for that of a segment; undefined where its own does, or that other one is empty. Throws
   * `BadInputError` where that cannot be read, with the place.
   */
  async of(
    reading: SourceReading,
    { headerIn }: Pick<SourceSegment, 'headerIn'>,
  ): Promise<readonly string[] | undefined> {
    if (headerIn === undefined) return undefined;
    const name = uriOf(headerIn);
    if (!this.#found.has(name)) this.#found.set(name, await this.#read(reading, headerIn));
    return this.#found.get(name);
  }

  async #read(reading: SourceReading, object: PlannedObject): Promise<readonly string[] | undefined> {
    const whole = { ...object, start: object.sizeBytes, end: object.sizeBytes };
    // What is bad in it is for those who read it as data.
    const form = { ...this.#form, bad: { policy: 'skip', onSkip: () => undefined } } as const;
    try {
      return await columnsBefore({ ...reading, onExpected: undefined }, whole, form);
    } catch (error) {
      throw error instanceof CsvProblem ? error.at(whole, 0) : error;
    }
  }
}
