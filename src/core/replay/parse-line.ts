import * as z from 'zod';
import { UnreadableRecordError } from '../../contracts/errors.ts';
import { attemptIdPattern } from '../../contracts/ids.ts';
import { firstProblem } from '../../contracts/invalid.ts';
import { decodeLine, journalFormat, type JournalLine } from './journal-lines.ts';

const count = z.int().min(0);
const time = z.int();
const attemptId = z.string().regex(attemptIdPattern);
const opened = z.array(z.tuple([count, z.array(z.number())])).exactOptional();
const named = z.looseObject({ attemptId });

/** The outer shape of each line: what lies deeper is what production's own types say, or spoils the replay. */
const lineSchema = z.discriminatedUnion('kind', [
  z.looseObject({
    kind: z.literal('session'),
    format: z.literal(journalFormat),
    jobId: z.string(),
    epoch: z.int(),
    at: time,
    shapes: z.array(
      z.looseObject({
        name: z.string(),
        tasks: count,
        upstream: z.array(count),
        sourceBytes: z.array(z.number()),
      }),
    ),
    launchOrder: z.enum(['largest-first', 'by-index']),
    config: z.looseObject({ policy: z.string(), policyConfig: z.looseObject({}) }),
  }),
  z.looseObject({ kind: z.literal('entry'), version: count, at: time, decided: z.string(), opened }),
  z.looseObject({ kind: z.literal('fence'), version: count }),
  z.looseObject({
    kind: z.literal('tick'),
    at: time,
    budget: z.looseObject({ slots: z.number(), cancelRequested: z.boolean() }).exactOptional(),
    version: count.exactOptional(),
    decided: z.string().exactOptional(),
    outcome: z.looseObject({ kind: z.enum(['finish', 'fail']) }).exactOptional(),
    opened,
  }),
  z.looseObject({ kind: z.literal('end'), why: z.enum(['left', 'too-long']) }),
  z.looseObject({ kind: z.literal('result'), at: time, result: named }),
  z.looseObject({ kind: z.literal('replica'), result: named }),
  z.looseObject({ kind: z.literal('attempt'), at: time, record: named }),
  z.looseObject({ kind: z.literal('unreadable'), record: z.looseObject({ key: z.string() }) }),
  z.looseObject({
    kind: z.literal('read'),
    at: time,
    ids: z.array(attemptId),
    what: z.enum(['records', 'outputs']),
  }),
  z.looseObject({ kind: z.literal('held'), attemptId }),
  z.looseObject({ kind: z.literal('launched'), attemptId, at: time }),
  z.looseObject({ kind: z.literal('withdrawn'), attemptId, notBefore: time }),
  z.looseObject({ kind: z.literal('cancel-ordered'), attemptId, at: time }),
  z.looseObject({ kind: z.literal('resumed'), attemptId, at: time }),
  z.looseObject({ kind: z.literal('suspects-sorted') }),
  z.looseObject({ kind: z.literal('output-there'), attemptId }),
  z.looseObject({ kind: z.literal('taken-over'), at: time }),
]);

/** A line of a journal. Throws `UnreadableRecordError` where it is none, or one of another version of Outrider. */
export function parseLine(text: string): JournalLine {
  const value = jsonOf(text);
  const format = isObject(value) && value['kind'] === 'session' ? value['format'] : undefined;
  if (typeof format === 'number' && format !== journalFormat) {
    throw new UnreadableRecordError(
      `it was written by another version of Outrider, in format ${format}, of which this one reads ${journalFormat} alone`,
    );
  }
  const parsed = lineSchema.safeParse(value);
  if (!parsed.success) throw new UnreadableRecordError(firstProblem(parsed.error, 'line'));
  return parsed.data as unknown as JournalLine;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

function jsonOf(text: string): unknown {
  try {
    return decodeLine(text);
  } catch (cause) {
    throw new UnreadableRecordError('it is no JSON', {}, { cause });
  }
}
