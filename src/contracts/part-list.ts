import * as z from 'zod';
import { UnreadableRecordError } from './errors.ts';
import { firstProblem } from './invalid.ts';
import type { OutputPart } from './records.ts';

/** The parts of a job's output, in order: what `_SUCCESS` holds. */
export interface PartList {
  readonly jobId: string;
  readonly parts: readonly OutputPart[];
}

const partListSchema = z.object({
  jobId: z.string(),
  parts: z.array(z.object({ key: z.string(), sizeBytes: z.number().min(0) })),
});

/** As text of one line for each field, which people and scripts read. */
export const encodePartList = ({ jobId, parts }: PartList): Uint8Array =>
  new TextEncoder().encode(`${JSON.stringify({ jobId, parts }, null, 1)}\n`);

/** What `encodePartList` made. Throws `UnreadableRecordError` where it is anything else. */
export function decodePartList(bytes: Uint8Array): PartList {
  let document: unknown;
  try {
    document = JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw new UnreadableRecordError('a list of output parts is no JSON', {}, { cause });
  }
  const parsed = partListSchema.safeParse(document);
  if (parsed.success) return parsed.data;
  throw new UnreadableRecordError(`a list of output parts cannot be read: ${firstProblem(parsed.error)}`);
}
