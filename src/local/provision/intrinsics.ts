import { ownValue } from '../../lib/own.ts';
import { provisionError } from './provision-error.ts';

/** What references in a template lead to. Each answers undefined for what is not there. */
export interface ReferenceScope {
  /** A parameter, a pseudo parameter (`AWS::Region`), or the physical id of a resource. */
  ref(name: string): unknown;
  attribute(logicalId: string, name: string): unknown;
  exported(name: string): unknown;
  condition(name: string): unknown;
  readonly availabilityZones: readonly string[];
}

/** Stands for a property that `Fn::If` removes by `AWS::NoValue`. */
export const noValue = Symbol('AWS::NoValue');

const MAX_DEPTH = 100;

type Intrinsic = (argument: unknown, at: Place) => unknown;

/** Where in a template a value stands, and what it may refer to. */
interface Place {
  readonly scope: ReferenceScope;
  readonly where: string;
  readonly depth: number;
}

/**
 * The value with every reference and function in it replaced by what it stands for.
 *
 * @param where - for messages: the resource and the property that the value belongs to.
 * @throws ProvisionError for a reference to nothing and a function that is not known here.
 */
export function resolveValue(value: unknown, scope: ReferenceScope, where: string): unknown {
  return resolveAt(value, { scope, where, depth: 0 });
}

function resolveAt(value: unknown, at: Place): unknown {
  if (at.depth > MAX_DEPTH) throw provisionError(at.where, 'nested too deep');
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    return items
      .map((item, index) => resolveAt(item, inside(at, String(index))))
      .filter((item) => item !== noValue);
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries: [string, unknown][] = Object.entries(value);
  const [first] = entries;
  if (first !== undefined && entries.length === 1) {
    const [name, argument] = first;
    const intrinsic = ownValue(intrinsics, name);
    // Policies have conditions too, but theirs are objects.
    const isPlain = name === 'Condition' && typeof argument !== 'string';
    if (intrinsic !== undefined && !isPlain) return intrinsic(argument, { ...at, depth: at.depth + 1 });
    if (name.startsWith('Fn::')) throw provisionError(at.where, `${name} is not known to the embedded stack`);
  }
  const resolved = entries.map(([name, inner]): [string, unknown] => [
    name,
    resolveAt(inner, inside(at, name)),
  ]);
  return Object.fromEntries(resolved.filter(([, inner]) => inner !== noValue));
}

const inside = (at: Place, name: string): Place => ({
  ...at,
  where: `${at.where}.${name}`,
  depth: at.depth + 1,
});

const intrinsics: Readonly<Record<string, Intrinsic>> = {
  Ref: (argument, at) => {
    const name = text(argument, 'Ref', at);
    return name === 'AWS::NoValue' ? noValue : found(at.scope.ref(name), `Ref to "${name}"`, at);
  },
  Condition: (argument, at) => {
    const name = text(argument, 'Condition', at);
    return found(at.scope.condition(name), `condition "${name}"`, at);
  },
  'Fn::GetAtt': (argument, at) => {
    const [logicalId = '', ...rest] =
      typeof argument === 'string' ? argument.split('.') : texts(argument, at);
    return attribute(logicalId, rest.join('.'), at);
  },
  'Fn::ImportValue': (argument, at) => {
    const name = text(resolveAt(argument, at), 'Fn::ImportValue', at);
    return found(at.scope.exported(name), `import of "${name}"`, at);
  },
  'Fn::Join': (argument, at) => {
    const [separator, parts] = list(resolveAt(argument, at), 'Fn::Join', at);
    return list(parts, 'Fn::Join', at)
      .map((part) => scalar(part, 'Fn::Join', at))
      .join(text(separator, 'Fn::Join', at));
  },
  'Fn::Sub': substitute,
  'Fn::Select': (argument, at) => {
    const [index, items] = list(resolveAt(argument, at), 'Fn::Select', at);
    return found(list(items, 'Fn::Select', at)[Number(index)], `Fn::Select of item ${String(index)}`, at);
  },
  'Fn::Split': (argument, at) => {
    const [separator, source] = list(resolveAt(argument, at), 'Fn::Split', at);
    return text(source, 'Fn::Split', at).split(text(separator, 'Fn::Split', at));
  },
  'Fn::GetAZs': (_argument, at) => at.scope.availabilityZones,
  'Fn::Base64': (argument, at) =>
    Buffer.from(text(resolveAt(argument, at), 'Fn::Base64', at)).toString('base64'),
  'Fn::If': (argument, at) => {
    const [name, whenTrue, whenFalse] = list(argument, 'Fn::If', at);
    const condition = text(name, 'Fn::If', at);
    return resolveAt(
      found(at.scope.condition(condition), `condition "${condition}"`, at) === true ? whenTrue : whenFalse,
      at,
    );
  },
  'Fn::Equals': (argument, at) => {
    const [left, right] = list(resolveAt(argument, at), 'Fn::Equals', at);
    return JSON.stringify(left) === JSON.stringify(right);
  },
  'Fn::Not': (argument, at) => list(resolveAt(argument, at), 'Fn::Not', at)[0] !== true,
  'Fn::And': (argument, at) => list(resolveAt(argument, at), 'Fn::And', at).every((item) => item === true),
  'Fn::Or': (argument, at) => list(resolveAt(argument, at), 'Fn::Or', at).includes(true),
};

function substitute(argument: unknown, at: Place): string {
  const [template, variables] = typeof argument === 'string' ? [argument, {}] : list(argument, 'Fn::Sub', at);
  const own = new Map(
    typeof variables === 'object' && variables !== null
      ? Object.entries(variables).map(([name, value]): [string, unknown] => [name, resolveAt(value, at)])
      : [],
  );
  return text(template, 'Fn::Sub', at).replaceAll(
    /\$\{(!?)([^}]+)\}/g,
    (_match, literal: string, name: string) => {
      if (literal === '!') return `\${${name}}`;
      const value = own.get(name) ?? reference(name, at);
      return scalar(value, `Fn::Sub of "${name}"`, at);
    },
  );
}

function reference(name: string, at: Place): unknown {
  const [logicalId = '', ...rest] = name.split('.');
  return rest.length > 0
    ? attribute(logicalId, rest.join('.'), at)
    : found(at.scope.ref(name), `Ref to "${name}"`, at);
}

function attribute(logicalId: string, name: string, at: Place): unknown {
  return found(at.scope.attribute(logicalId, name), `attribute "${name}" of "${logicalId}"`, at);
}

function found<T>(value: T, what: string, at: Place): T {
  if (value === undefined) throw provisionError(at.where, `${what} leads to nothing`);
  return value;
}

function text(value: unknown, name: string, at: Place): string {
  if (typeof value !== 'string') throw provisionError(at.where, `${name} must be given text`);
  return value;
}

function texts(value: unknown, at: Place): string[] {
  return list(value, 'Fn::GetAtt', at).map((item) => text(item, 'Fn::GetAtt', at));
}

function list(value: unknown, name: string, at: Place): readonly unknown[] {
  if (!Array.isArray(value)) throw provisionError(at.where, `${name} must be given a list`);
  return value;
}

function scalar(value: unknown, name: string, at: Place): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return String(value);
  throw provisionError(at.where, `${name} must be given text`);
}
