/** A CSV record and its newline: fields are quoted where they must be (RFC 4180), null is an empty field. */
export function csvLine(fields: readonly string[]): string {
  // Readers skip empty lines, so that a lone empty field must be told from one.
  if (fields.length === 1 && fields[0] === '') return '""\n';
  return `${fields.map(csvField).join(',')}\n`;
}

const csvField = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** A JSON value as the text of a CSV field: texts as they are, null as nothing, anything else as JSON. */
export function csvValue(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null || value === undefined ? '' : JSON.stringify(value);
}
