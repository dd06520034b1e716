import draft4, { type ValidateFunction } from 'ajv-draft-04';

/** A JSON Schema of draft 4, as a REST API's model holds it. */
export type RequestModel = Readonly<Record<string, unknown>>;

/** Thrown for a schema that would be read otherwise than its author meant. */
export class UnsupportedModelError extends Error {
  override readonly name = 'UnsupportedModelError';
}

/** What the validator would take though draft 4 has none of it: to API Gateway they are no keywords. */
const laterKeywords = [
  '$comment',
  '$defs',
  'const',
  'contains',
  'else',
  'if',
  'maxContains',
  'minContains',
  'nullable',
  'propertyNames',
  'then',
];

const isObject = (value: unknown): value is RequestModel =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** As draft 4 has it, what stands beside a reference is ignored: the validator does that for all but types. */
const ignoringBesideReferences = (schema: RequestModel): RequestModel =>
  Object.fromEntries(
    Object.entries(schema)
      .filter(([keyword]) => keyword !== 'type' || typeof schema['$ref'] !== 'string')
      .map(([keyword, value]) => [
        keyword,
        keyword === 'enum' || keyword === 'default' ? value : within(value),
      ]),
  );

function within(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(within);
  return isObject(value) ? ignoringBesideReferences(value) : value;
}

/** Made once: with the first schema it compiles that of draft 4 itself, which takes longer than the models of an API. */
let compiler: InstanceType<typeof draft4.default> | undefined;

function makeCompiler(): InstanceType<typeof draft4.default> {
  const ajv = new draft4.default({
    // A keyword that is not checked must not look as if it were.
    strictSchema: true,
    strictNumbers: false,
    strictTypes: false,
    strictTuples: false,
    strictRequired: false,
    allowMatchingProperties: true,
    ignoreKeywordsWithRef: true,
    // An annotation to API Gateway, too.
    validateFormats: false,
    // Fields named as in Object are fields of the body or none.
    ownProperties: true,
    logger: false,
  });
  for (const keyword of laterKeywords) ajv.removeKeyword(keyword);
  return ajv;
}

function compile(model: RequestModel): ValidateFunction {
  compiler ??= makeCompiler();
  const schema = ignoringBesideReferences(model);
  try {
    return compiler.compile(schema);
  } finally {
    // Models know nothing of each other, even where two have the same id.
    compiler.removeSchema(schema);
  }
}

/**
 * Makes a check of request bodies from a model.
 *
 * @returns whether a body, as text, is JSON that the model allows; an empty body is not, nor is one that is nested too
 * deeply to be looked at.
 * @throws UnsupportedModelError for a schema that is no draft 4.
 */
export function compileModel(model: RequestModel): (body: string) => boolean {
  let isAllowed: ValidateFunction;
  try {
    isAllowed = compile(model);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UnsupportedModelError(`request model: ${why}`, { cause });
  }
  return (body) => {
    const value = parseJson(body);
    if (value === undefined) return false;
    try {
      return isAllowed(value.document);
    } catch (cause) {
      // A schema that refers to itself follows a body as deep as the stack goes.
      if (cause instanceof RangeError) return false;
      throw cause;
    }
  };
}

function parseJson(text: string): { readonly document: unknown } | undefined {
  try {
    const document: unknown = JSON.parse(text);
    return { document };
  } catch {
    return undefined;
  }
}
