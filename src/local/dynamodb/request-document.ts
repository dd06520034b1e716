import { type EngineAnswer, errorAnswer } from './engine.ts';

/** The parameters of an operation. */
export type RequestDocument = Readonly<Record<string, unknown>>;

/** Dynoxide's parser gives up at 128 levels, of which its envelope takes some; DynamoDB itself at 32 of maps. */
const MAX_DEPTH = 100;

/**
 * Reads a request before an engine does: one drops what it cannot parse without an answer, the other ends by it.
 *
 * @returns The document, or the refusal of what is no JSON object or nested too deep.
 */
export function readDocument(body: Buffer): { readonly document: RequestDocument } | EngineAnswer {
  const text = body.toString('utf8');
  if (isDeeperThan(text, MAX_DEPTH)) {
    return errorAnswer('ValidationException', 'Nesting Levels have exceeded supported limits');
  }
  const document = parseObject(text);
  return document === undefined ? errorAnswer('SerializationException', '') : { document };
}

/** Undefined for what is no JSON object. */
export function parseObject(text: string): RequestDocument | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Counted before it is parsed, since parsers of deep documents run out of stack. */
function isDeeperThan(json: string, limit: number): boolean {
  let depth = 0;
  let isInText = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (isInText) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) isInText = false;
    } else if (code === QUOTE) {
      isInText = true;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > limit) return true;
    } else if (code === 0x7d || code === 0x5d) {
      depth--;
    }
  }
  return false;
}
