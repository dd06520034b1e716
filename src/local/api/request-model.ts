import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

/** A JSON Schema of draft 4, as a REST API's model holds it. */
export type RequestModel = Readonly<Record<string, unknown>>;

/** Thrown for a schema that this validator would read otherwise than its author meant. */
export class UnsupportedModelError extends Error {
  override readonly name = 'UnsupportedModelError';
}

/** Schemas that refer to themselves and bodies nested beyond this are refused. */
const MAX_DEPTH = 64;

const count = z.int().min(0);
const typeName = z.enum(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']);

interface Schema {
  readonly $ref?: string | undefined;
  readonly type?: TypeName | readonly TypeName[] | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly multipleOf?: number | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly exclusiveMinimum?: boolean | undefined;
  readonly exclusiveMaximum?: boolean | undefined;
  readonly minLength?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly pattern?: string | undefined;
  readonly items?: Schema | undefined;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
  readonly uniqueItems?: boolean | undefined;
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
  readonly patternProperties?: Readonly<Record<string, Schema>> | undefined;
  readonly additionalProperties?: boolean | Schema | undefined;
  readonly required?: readonly string[] | undefined;
  readonly minProperties?: number | undefined;
  readonly maxProperties?: number | undefined;
  readonly allOf?: readonly Schema[] | undefined;
  readonly anyOf?: readonly Schema[] | undefined;
  readonly oneOf?: readonly Schema[] | undefined;
  readonly not?: Schema | undefined;
  readonly definitions?: Readonly<Record<string, Schema>> | undefined;
}
type TypeName = z.infer<typeof typeName>;

const schemas: z.ZodType<Schema> = z.lazy(() => schema);
const pattern = z.string().refine(isPattern, 'not a regular expression');
// Strict: a keyword that is not checked must not look as if it were.
const schema = z.strictObject({
  $schema: z.string().optional(),
  id: z.string().optional(),
  title: z.string().optional(),
  description: z.string().optional(),
  default: z.unknown().optional(),
  format: z.string().optional(), // An annotation to API Gateway, too.
  $ref: z.string().optional(),
  type: z.union([typeName, z.array(typeName).min(1)]).optional(),
  enum: z.array(z.unknown()).min(1).optional(),
  multipleOf: z.number().positive().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  exclusiveMinimum: z.boolean().optional(),
  exclusiveMaximum: z.boolean().optional(),
  minLength: count.optional(),
  maxLength: count.optional(),
  pattern: pattern.optional(),
  items: schemas.optional(),
  minItems: count.optional(),
  maxItems: count.optional(),
  uniqueItems: z.boolean().optional(),
  properties: z.record(z.string(), schemas).optional(),
  patternProperties: z.record(pattern, schemas).optional(),
  additionalProperties: z.union([z.boolean(), schemas]).optional(),
  required: z.array(z.string()).min(1).optional(),
  minProperties: count.optional(),
  maxProperties: count.optional(),
  allOf: z.array(schemas).min(1).optional(),
  anyOf: z.array(schemas).min(1).optional(),
  oneOf: z.array(schemas).min(1).optional(),
  not: schemas.optional(),
  definitions: z.record(z.string(), schemas).optional(),
});

/**
 * Makes a check of request bodies from a model.
 *
 * @returns whether a body, as text, is JSON that the model allows; an empty body is not.
 * @throws UnsupportedModelError for a schema that is no draft 4 or has a keyword outside the subset.
 */
export function compileModel(model: RequestModel): (body: string) => boolean {
  const parsed = schema.safeParse(model);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new UnsupportedModelError(
      `request model, '${issue?.path.join('.') ?? ''}': ${issue?.message ?? ''}`,
    );
  }
  const root: Schema = parsed.data;
  // Now rather than at the first request that meets it.
  for (const [, reference] of JSON.stringify(model).matchAll(/"\$ref":"([^"]*)"/g))
    resolve(root, reference ?? '');
  return (body) => {
    const value = parseJson(body);
    return value !== undefined && allows({ root, depth: 0 }, root, value.document);
  };
}

function isPattern(source: string): boolean {
  try {
    return new RegExp(source, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}

function parseJson(text: string): { readonly document: unknown } | undefined {
  try {
    const document: unknown = JSON.parse(text);
    return { document };
  } catch {
    return undefined;
  }
}

interface Place {
  readonly root: Schema;
  readonly depth: number;
}

function allows(place: Place, rule: Schema, value: unknown): boolean {
  if (place.depth > MAX_DEPTH) return false;
  const within = { root: place.root, depth: place.depth + 1 };
  // As draft 4 has it: what stands beside a reference is ignored.
  if (rule.$ref !== undefined) return allows(within, resolve(place.root, rule.$ref), value);
  return (
    (rule.type === undefined || [rule.type].flat().some((type) => isOfType(type, value))) &&
    (rule.enum === undefined || rule.enum.some((option) => isDeepStrictEqual(option, value))) &&
    (typeof value !== 'number' || allowsNumber(rule, value)) &&
    (typeof value !== 'string' || allowsText(rule, value)) &&
    (!Array.isArray(value) || allowsArray(within, rule, value)) &&
    (!isObject(value) || allowsObject(within, rule, value)) &&
    (rule.allOf?.every((part) => allows(within, part, value)) ?? true) &&
    (rule.anyOf?.some((part) => allows(within, part, value)) ?? true) &&
    (rule.oneOf === undefined || rule.oneOf.filter((part) => allows(within, part, value)).length === 1) &&
    (rule.not === undefined || !allows(within, rule.not, value))
  );
}

function resolve(root: Schema, reference: string): Schema {
  if (reference === '#') return root;
  const name = /^#\/definitions\/([^/]+)$/.exec(reference)?.[1];
  const found = name === undefined ? undefined : root.definitions?.[name];
  if (found === undefined) throw new UnsupportedModelError(`request model: no definition '${reference}'`);
  return found;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isOfType(type: TypeName, value: unknown): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    case 'null':
      return value === null;
    case 'object':
      return isObject(value);
    case 'boolean':
    case 'number':
    case 'string':
      return typeof value === type;
  }
}

function allowsNumber(rule: Schema, value: number): boolean {
  const { minimum = -Infinity, maximum = Infinity } = rule;
  if (rule.multipleOf !== undefined && !Number.isInteger(value / rule.multipleOf)) return false;
  return (
    (rule.exclusiveMinimum === true ? value > minimum : value >= minimum) &&
    (rule.exclusiveMaximum === true ? value < maximum : value <= maximum)
  );
}

function allowsText(rule: Schema, value: string): boolean {
  const sizeChars = Array.from(value).length;
  return (
    sizeChars >= (rule.minLength ?? 0) &&
    sizeChars <= (rule.maxLength ?? Infinity) &&
    (rule.pattern === undefined || new RegExp(rule.pattern, 'u').test(value))
  );
}

function allowsArray(place: Place, rule: Schema, value: readonly unknown[]): boolean {
  const { items } = rule;
  if (value.length < (rule.minItems ?? 0) || value.length > (rule.maxItems ?? Infinity)) return false;
  if (
    rule.uniqueItems === true &&
    value.some((item, at) => value.slice(0, at).some((other) => isDeepStrictEqual(item, other)))
  ) {
    return false;
  }
  return items === undefined || value.every((item) => allows(place, items, item));
}

function allowsObject(place: Place, rule: Schema, value: Readonly<Record<string, unknown>>): boolean {
  const keys = Object.keys(value);
  if (keys.length < (rule.minProperties ?? 0) || keys.length > (rule.maxProperties ?? Infinity)) return false;
  if (rule.required?.some((key) => !Object.hasOwn(value, key)) === true) return false;
  return keys.every((key) => allowsProperty(place, rule, key, value[key]));
}

function allowsProperty(place: Place, rule: Schema, key: string, value: unknown): boolean {
  const named =
    rule.properties !== undefined && Object.hasOwn(rule.properties, key) ? rule.properties[key] : undefined;
  const matching = Object.entries(rule.patternProperties ?? {})
    .filter(([source]) => new RegExp(source, 'u').test(key))
    .map(([, part]) => part);
  const rules = named === undefined ? matching : [named, ...matching];
  if (rules.length > 0) return rules.every((part) => allows(place, part, value));
  const { additionalProperties: rest = true } = rule;
  return typeof rest === 'boolean' ? rest : allows(place, rest, value);
}
