import { EcsError, invalidParameter } from './model.ts';

/** A request body, or a structure within. */
export type Fields = Readonly<Record<string, unknown>>;

/** What RunTask asks for. */
export interface RunTaskRequest {
  readonly cluster: string;
  readonly taskDefinition: string;
  readonly count: number;
  readonly startedBy: string | undefined;
  readonly clientToken: string | undefined;
  /** Never empty. */
  readonly subnets: readonly string[];
  readonly overrides: readonly ContainerOverride[];
  /** Of the whole task; undefined where it has that of its definition. */
  readonly memoryMb: number | undefined;
  /** What it runs on, of the providers that the cluster offers; undefined for Fargate on demand. */
  readonly capacityProvider: string | undefined;
}

export interface ContainerOverride {
  readonly name: string;
  readonly command: readonly string[] | undefined;
  readonly environment: Readonly<Record<string, string>>;
}

const MAX_COUNT = 10;
const MAX_OVERRIDES_CHARS = 8192;
const MAX_SUBNETS = 16;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wrongType(name: string, wanted: string): EcsError {
  return new EcsError('SerializationException', `${name} must be ${wanted}`);
}

/** Reads a request body. Throws SerializationException unless it is a JSON object. */
export function parseFields(json: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw wrongType('the body', 'JSON');
  }
  if (!isFields(value)) throw wrongType('the body', 'an object');
  return value;
}

/** A text field; undefined if absent. */
export function readText(fields: Fields, name: string): string | undefined {
  const value = fields[name] ?? undefined;
  if (value !== undefined && typeof value !== 'string') throw wrongType(name, 'a string');
  return value;
}

/** A whole number; undefined if absent. */
export function readInteger(fields: Fields, name: string): number | undefined {
  const value = fields[name] ?? undefined;
  if (value !== undefined && (typeof value !== 'number' || !Number.isInteger(value))) {
    throw wrongType(name, 'an integer');
  }
  return value;
}

/** A list of texts; undefined if absent. */
export function readTexts(fields: Fields, name: string): string[] | undefined {
  const value = fields[name] ?? undefined;
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw wrongType(name, 'a list');
  return value.map((item: unknown) => {
    if (typeof item !== 'string') throw wrongType(name, 'a list of strings');
    return item;
  });
}

function readStructure(fields: Fields, name: string): Fields {
  const value = fields[name] ?? {};
  if (!isFields(value)) throw wrongType(name, 'a structure');
  return value;
}

function readStructures(fields: Fields, name: string): Fields[] {
  const value = fields[name] ?? [];
  if (!Array.isArray(value)) throw wrongType(name, 'a list');
  return value.map((item: unknown) => {
    if (!isFields(item)) throw wrongType(name, 'a list of structures');
    return item;
  });
}

function readOverride(fields: Fields): ContainerOverride {
  const environment: Record<string, string> = {};
  for (const pair of readStructures(fields, 'environment')) {
    const name = readText(pair, 'name');
    if (name !== undefined) environment[name] = readText(pair, 'value') ?? '';
  }
  return { name: readText(fields, 'name') ?? '', command: readTexts(fields, 'command'), environment };
}

function readSubnets(fields: Fields): string[] {
  const network = readStructure(fields, 'networkConfiguration');
  const subnets = readTexts(readStructure(network, 'awsvpcConfiguration'), 'subnets') ?? [];
  if (subnets.length === 0) {
    throw invalidParameter("Network Configuration must be provided when networkMode 'awsvpc' is specified.");
  }
  if (subnets.length > MAX_SUBNETS)
    throw invalidParameter(`subnets can have at most ${String(MAX_SUBNETS)} items.`);
  return subnets;
}

function readMemory(overrides: Fields): number | undefined {
  const text = readText(overrides, 'memory');
  if (text !== undefined && !/^\d{1,6}$/.test(text))
    throw invalidParameter('No Fargate configuration exists for given values.');
  return text === undefined ? undefined : Number(text);
}

/** The provider of a strategy that leaves nothing to share out: of one provider, or the one that has a weight. */
function readProvider(fields: Fields): string | undefined {
  const strategy = readStructures(fields, 'capacityProviderStrategy');
  if (strategy.length === 0) return undefined;
  if (readText(fields, 'launchType') !== undefined)
    throw invalidParameter('Specifying both a launch type and capacity provider strategy is not supported.');
  const weighed = strategy.filter((each) => (readInteger(each, 'weight') ?? 0) > 0);
  const [first] = weighed;
  if (first === undefined)
    throw invalidParameter('At least one capacity provider must have a weight value greater than zero.');
  return readText(first, 'capacityProvider') ?? '';
}

/** Reads RunTask's input within AWS's limits. Throws EcsError, starting nothing. */
export function parseRunTask(fields: Fields): RunTaskRequest {
  const count = readInteger(fields, 'count') ?? 1;
  if (count < 1 || count > MAX_COUNT) {
    throw invalidParameter(`Count must be between 1 and ${String(MAX_COUNT)}.`);
  }
  const taskDefinition = readText(fields, 'taskDefinition');
  if (taskDefinition === undefined) throw invalidParameter('TaskDefinition can not be blank.');
  const clientToken = readText(fields, 'clientToken');
  if (clientToken !== undefined && !/^[\x21-\x7e]{1,64}$/.test(clientToken)) {
    throw invalidParameter('clientToken must be 1 to 64 ASCII characters.');
  }
  const overrides = readStructure(fields, 'overrides');
  if (JSON.stringify(overrides).length > MAX_OVERRIDES_CHARS) {
    throw invalidParameter(`Container Overrides length must be at most ${String(MAX_OVERRIDES_CHARS)}`);
  }
  return {
    cluster: readText(fields, 'cluster') ?? 'default',
    taskDefinition,
    count,
    startedBy: readText(fields, 'startedBy'),
    clientToken,
    subnets: readSubnets(fields),
    overrides: readStructures(overrides, 'containerOverrides').map(readOverride),
    memoryMb: readMemory(overrides),
    capacityProvider: readProvider(fields),
  };
}
