/** The counter of records that were left out. */
export const skippedRecords = 'skippedRecords';
/** The counter of lines of text that are no UTF-8, of which a job in TypeScript has U+FFFD in the place of what is none. */
export const invalidUtf8Lines = 'invalidUtf8Lines';
/** The counter of records that were written with U+FFFD in the place of half a character, a surrogate without its other half. */
export const halfCharacterRecords = 'halfCharacterRecords';

const ownCounters: ReadonlySet<string> = new Set([skippedRecords, invalidUtf8Lines, halfCharacterRecords]);

/** Whether a counter takes one of the names that a task or a job may count under: those of the system come besides. */
export const takesName = (counter: string): boolean => !ownCounters.has(counter);
