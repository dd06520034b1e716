import * as z from 'zod';
import { limits } from '../../contracts/limits.ts';
import { causesOfUserCode } from '../failure-of.ts';
import {
  type DoneMessage,
  type FailedMessage,
  type HelloMessage,
  parsedBody,
  ProtocolError,
  protocolVersion,
  type ReadyMessage,
} from './protocol.ts';

/*
 * What a process of user code says, checked: user code may have changed anything there. Only the worker checks; the
 * process would start later for it, and has nobody but its worker to hear.
 */

const helloSchema = z.object({ version: z.literal(protocolVersion) });
const readySchema = z.object({ resumes: z.boolean() });
const failedSchema = z.object({
  cause: z.enum([...causesOfUserCode, 'storage']),
  message: z.string().max(2 * limits.failureChars),
  stream: z.int().optional(),
  place: z
    .union([
      z.object({
        kind: z.literal('file'),
        input: z.int(),
        file: z.string().max(2 * limits.keyBytes),
        offset: z.number().nonnegative(),
      }),
      z.object({ kind: z.literal('words'), words: z.string().max(limits.failureChars) }),
    ])
    .optional(),
});
const doneSchema = z.object({
  recordsOut: z.int().nonnegative(),
  peakMemoryBytes: z.number().nonnegative(),
  counters: z.array(z.tuple([z.string(), z.number()])),
  state: z.string().max(limits.savedNoteBytes).nullish(),
});

function checked<T>(schema: z.ZodType<T>, body: Buffer): T {
  const parsed = schema.safeParse(parsedBody(body));
  if (!parsed.success) throw new ProtocolError('a message that makes no sense', { cause: parsed.error });
  return parsed.data;
}

/** Each throws `ProtocolError` where the message is not what it should be. */
export const helloOf = (body: Buffer): HelloMessage => checked(helloSchema, body);
export const readyOf = (body: Buffer): ReadyMessage => checked(readySchema, body);
export const failedOf = (body: Buffer): FailedMessage => checked(failedSchema, body);
export const doneOf = (body: Buffer): DoneMessage => checked(doneSchema, body);
