import type { z } from 'zod';
import { badLine, traceLines } from './trace-lines.ts';
import type { TraceLine } from './trace-lines.ts';

/**
 * Documents of a file with one JSON document a line, each with its line. Throws `InvalidInputError` naming line
 * and field for a line that is no JSON or does not fit `schema`.
 */
export async function* traceDocuments<T>(
  path: string,
  schema: z.ZodType<T>,
): AsyncGenerator<{ line: TraceLine; document: T }, void, void> {
  for await (const line of traceLines(path)) {
    const parsed = schema.safeParse(parseJson(line));
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      const field = issue?.path.map(String).join('.') ?? '';
      throw badLine(line, `${field === '' ? 'document' : field}: ${issue?.message ?? 'unexpected'}`);
    }
    yield { line, document: parsed.data };
  }
}

function parseJson(line: TraceLine): unknown {
  try {
    return JSON.parse(line.text);
  } catch {
    throw badLine(line, 'not a JSON document');
  }
}
