import type { StateMachineDefinition } from 'aws-local-stepfunctions';
import * as z from 'zod';

/**
 * Thrown for a definition that the embedded Step Functions would run otherwise than AWS:
 * refused at start, since the interpreter ignores what it does not know.
 */
export class UnsupportedDefinitionError extends Error {
  override readonly name = 'UnsupportedDefinitionError';
  /** The state at fault; absent if the fault is at the top of the definition. */
  readonly stateName: string | undefined;
  /** The field at fault, dotted from the state on: `Retry.0.ErrorEquals`. */
  readonly field: string;

  constructor(stateName: string | undefined, field: string, problem: string) {
    super(
      `${stateName === undefined ? 'state machine' : `state '${stateName}'`}, field '${field}': ${problem}`,
    );
    this.stateName = stateName;
    this.field = field;
  }
}

/** Node's timers hold 31 bits of milliseconds; beyond, they fire at once. */
export const MAX_TIMER_SECONDS = 2_147_483;
const MAX_AWS_SECONDS = 99_999_999;

const LAMBDA_ARN = /^arn:aws[a-z-]*:lambda:[a-z0-9-]*:\d*:function:[A-Za-z0-9_-]+(:[A-Za-z0-9_$-]+)?$/;
export const INVOKE_ARN = /^arn:aws[a-z-]*:states:::lambda:invoke(\.waitForTaskToken)?$/;
export const WAITING_ARN = /\.waitForTaskToken$/;
export const TOKEN_PATH = '$$.Task.Token';

// Paths to one value only: the interpreter unwraps a lone match of a wildcard or filter, AWS does not.
const STEP = String.raw`(\.[A-Za-z_][A-Za-z0-9_-]*|\['[^'\\]+'\]|\[\d+\])`;
const INPUT_PATH = new RegExp(String.raw`^\$${STEP}*$`);
const CONTEXT_PATH = new RegExp(
  String.raw`^\$\$\.(Execution\.(Id|Name|StartTime)|Execution\.Input${STEP}*|StateMachine\.(Id|Name))$`,
);
// The interpreter reads a result path that begins with a bracket as a key named `$`.
const RESULT_PATH = new RegExp(String.raw`^\$(\.[A-Za-z_][A-Za-z0-9_-]*${STEP}*)?$`);
// `?`, `[` and the like are wildcards to the interpreter, letters to AWS.
const STRING_PATTERN = /^[A-Za-z0-9_\s.:/*-]*$/;

/** Not among them: JsonToString, of whose result the interpreter strips every backslash. */
const INTRINSICS = new Set(
  'Format StringToJson Array ArrayPartition ArrayContains ArrayRange ArrayGetItem ArrayLength ArrayUnique Base64Encode Base64Decode Hash JsonMerge MathAdd MathRandom StringSplit UUID'.split(
    ' ',
  ),
);

const seconds = z.int().min(1).max(MAX_AWS_SECONDS);
const isPath = (text: string): boolean => INPUT_PATH.test(text) || CONTEXT_PATH.test(text);
const path = z
  .string()
  .refine(isPath, 'only a path to one value, or a known field of the context object, is supported');
const resultPath = z.string().regex(RESULT_PATH, 'only $ or $.name… is supported').nullable();

/** What is wrong with a payload template, or nothing. */
function templateProblem(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.map(templateProblem).find((problem) => problem !== undefined);
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const problem = key.endsWith('.$') ? dynamicProblem(key, inner) : templateProblem(inner);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function dynamicProblem(key: string, value: unknown): string | undefined {
  if (typeof value !== 'string') return `'${key}' must be a path or an intrinsic function`;
  if (value === TOKEN_PATH) return undefined; // Where there is one; see `checkInvoke`.
  if (value.startsWith('$'))
    return isPath(value) ? undefined : `'${key}': the path ${value} is not supported`;
  if (value.includes(TOKEN_PATH))
    return `'${key}': a task token inside of an intrinsic function is not supported`;
  if (value.includes('\\')) return `'${key}': escapes in intrinsic functions are not supported`;
  const calls = [...value.matchAll(/States\.([A-Za-z0-9]+)\(/g)];
  const unknown = calls.find(([, name]) => !INTRINSICS.has(name ?? ''));
  if (unknown !== undefined) return `'${key}': the function States.${unknown[1] ?? ''} is not supported`;
  return calls.length > 0 && value.startsWith('States.') ? undefined : `'${key}': ${value} is not supported`;
}

const template = z.unknown().superRefine((value, context) => {
  const problem = templateProblem(value);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
});

const errorEquals = z.array(z.string().min(1)).min(1);
const retrier = z.strictObject({
  Comment: z.string().optional(),
  ErrorEquals: errorEquals,
  IntervalSeconds: seconds.optional(),
  MaxAttempts: z.int().min(0).max(MAX_AWS_SECONDS).optional(),
  BackoffRate: z.number().min(1).optional(),
  MaxDelaySeconds: seconds.optional(),
  JitterStrategy: z.enum(['FULL', 'NONE']).optional(),
});
const catcher = z.strictObject({
  Comment: z.string().optional(),
  ErrorEquals: errorEquals,
  Next: z.string(),
  ResultPath: resultPath.optional(),
});

const common = {
  Comment: z.string().optional(),
  QueryLanguage: z.literal('JSONPath').optional(),
  InputPath: path.nullable().optional(),
  OutputPath: path.nullable().optional(),
};
const onwards = { Next: z.string().optional(), End: z.literal(true).optional() };

const task = z.strictObject({
  ...common,
  ...onwards,
  Type: z.literal('Task'),
  Resource: z
    .string()
    .refine(
      (arn) => LAMBDA_ARN.test(arn) || INVOKE_ARN.test(arn),
      'only Lambda functions and lambda:invoke are supported',
    ),
  Parameters: template.optional(),
  ResultSelector: template.optional(),
  ResultPath: resultPath.optional(),
  TimeoutSeconds: seconds.optional(),
  TimeoutSecondsPath: path.optional(),
  HeartbeatSeconds: seconds.optional(),
  Retry: z.array(retrier).optional(),
  Catch: z.array(catcher).optional(),
});
const pass = z.strictObject({
  ...common,
  ...onwards,
  Type: z.literal('Pass'),
  Parameters: template.optional(),
  ResultPath: resultPath.optional(),
  Result: z
    .unknown()
    .refine((value) => value === undefined || Boolean(value), 'an empty result is ignored by the interpreter')
    .optional(),
});
const wait = z.strictObject({
  ...common,
  ...onwards,
  Type: z.literal('Wait'),
  Seconds: z.int().min(0).max(MAX_TIMER_SECONDS).optional(),
  SecondsPath: path.optional(),
  Timestamp: z.iso.datetime({ offset: true }).optional(),
  TimestampPath: path.optional(),
});
const succeed = z.strictObject({ ...common, Type: z.literal('Succeed') });
const fail = z.strictObject({
  Comment: common.Comment,
  QueryLanguage: common.QueryLanguage,
  Type: z.literal('Fail'),
  Error: z.string().optional(),
  ErrorPath: path.optional(),
  Cause: z.string().optional(),
  CausePath: path.optional(),
});

export const TYPE_TESTS = ['IsNull', 'IsPresent', 'IsNumeric', 'IsString', 'IsBoolean', 'IsTimestamp'];

/** A rule of a Choice; its comparisons are checked but never read here. */
export interface ChoiceRule {
  readonly Next?: string | undefined;
  readonly And?: readonly ChoiceRule[] | undefined;
  readonly Or?: readonly ChoiceRule[] | undefined;
  readonly Not?: ChoiceRule | undefined;
  readonly [comparison: string]: unknown;
}

const comparisons: z.ZodType<ChoiceRule> = z.strictObject({
  ...Object.fromEntries(
    ['String', 'Numeric', 'Timestamp'].flatMap((kind) =>
      ['Equals', 'LessThan', 'GreaterThan', 'LessThanEquals', 'GreaterThanEquals'].flatMap((operator) => [
        [`${kind}${operator}`, (kind === 'Numeric' ? z.number() : z.string()).optional()] as const,
        [`${kind}${operator}Path`, path.optional()] as const,
      ]),
    ),
  ),
  ...Object.fromEntries(TYPE_TESTS.map((test) => [test, z.boolean().optional()])),
  BooleanEquals: z.boolean().optional(),
  BooleanEqualsPath: path.optional(),
  StringMatches: z.string().regex(STRING_PATTERN, 'the only wildcard supported is *').optional(),
  Variable: path.optional(),
  Comment: z.string().optional(),
  Next: z.string().optional(),
  get And() {
    return z.array(comparisons).min(1).optional();
  },
  get Or() {
    return z.array(comparisons).min(1).optional();
  },
  get Not() {
    return comparisons.optional();
  },
});
const choice = z.strictObject({
  ...common,
  Type: z.literal('Choice'),
  Choices: z.array(comparisons).min(1),
  Default: z.string().optional(),
});

const stateMachine = z.strictObject({
  Comment: z.string().optional(),
  QueryLanguage: z.literal('JSONPath').optional(),
  Version: z.literal('1.0').optional(),
  StartAt: z.string(),
  TimeoutSeconds: seconds.optional(),
  States: z.record(z.string(), z.discriminatedUnion('Type', [task, pass, wait, succeed, fail, choice])),
});
type CheckedDefinition = z.infer<typeof stateMachine>;
type CheckedState = CheckedDefinition['States'][string];

/**
 * Passes a definition that the embedded Step Functions runs as AWS does, and no other.
 *
 * The subset: JSONPath; Task (Lambda by ARN or `lambda:invoke`), Choice, Pass, Wait, Succeed,
 * Fail; Retry, Catch, time-outs; task tokens and heartbeats of `lambda:invoke`. Not in it: JSONata, Assign, Map,
 * Parallel, wildcard paths, and every field not named in the language.
 *
 * @throws UnsupportedDefinitionError naming the first state and field outside the subset.
 */
export function assertSupportedDefinition(definition: unknown): asserts definition is StateMachineDefinition {
  checkDefinition(definition);
}

/** As `assertSupportedDefinition`; answers the definition with its types. */
export function checkDefinition(definition: unknown): CheckedDefinition {
  const parsed = stateMachine.safeParse(definition);
  if (!parsed.success) throw unsupported(parsed.error.issues[0]);
  const { States: states, StartAt: startAt } = parsed.data;

  if (!Object.hasOwn(states, startAt))
    throw new UnsupportedDefinitionError(undefined, 'StartAt', `no state '${startAt}'`);
  for (const [name, state] of Object.entries(states)) {
    checkTransitions(name, state, states);
    if (state.Type === 'Task') {
      checkInvoke(name, state);
      checkErrorLists(name, 'Retry', state.Retry ?? []);
      checkErrorLists(name, 'Catch', state.Catch ?? []);
    }
    if (state.Type === 'Wait')
      checkOne(name, 'Seconds', [state.Seconds, state.SecondsPath, state.Timestamp, state.TimestampPath]);
  }
  return parsed.data;
}

function unsupported(issue: z.core.$ZodIssue | undefined): UnsupportedDefinitionError {
  if (issue === undefined) return new UnsupportedDefinitionError(undefined, '', 'not supported');
  const steps = issue.path.map(String);
  const [top, stateName, ...rest] = steps;
  const extra = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const problem = issue.code === 'unrecognized_keys' ? 'not supported' : issue.message;
  return top === 'States' && stateName !== undefined
    ? new UnsupportedDefinitionError(stateName, [...rest, ...extra].join('.'), problem)
    : new UnsupportedDefinitionError(undefined, [...steps, ...extra].join('.'), problem);
}

function checkTransitions(name: string, state: CheckedState, states: CheckedDefinition['States']): void {
  const targets: (readonly [field: string, target: string | undefined])[] = [];
  if (state.Type === 'Choice') {
    targets.push(['Default', state.Default]);
    state.Choices.forEach(({ Next }, index) => {
      if (Next === undefined)
        throw new UnsupportedDefinitionError(name, `Choices.${String(index)}.Next`, 'missing');
      targets.push([`Choices.${String(index)}.Next`, Next]);
    });
  } else if (state.Type !== 'Succeed' && state.Type !== 'Fail') {
    checkOne(name, 'Next', [state.Next, state.End]);
    targets.push(['Next', state.Next]);
    if (state.Type === 'Task') {
      state.Catch?.forEach(({ Next }, index) => targets.push([`Catch.${String(index)}.Next`, Next]));
    }
  }
  for (const [field, target] of targets) {
    if (target !== undefined && !Object.hasOwn(states, target)) {
      throw new UnsupportedDefinitionError(name, field, `no state '${target}'`);
    }
  }
}

function checkOne(name: string, field: string, alternatives: readonly unknown[]): void {
  const given = alternatives.filter((value) => value !== undefined).length;
  if (given !== 1)
    throw new UnsupportedDefinitionError(name, field, 'exactly one of the alternatives must be given');
}

function checkInvoke(name: string, state: z.infer<typeof task>): void {
  checkWaiting(name, state);
  if (!INVOKE_ARN.test(state.Resource)) return;
  const parameters =
    typeof state.Parameters === 'object' && state.Parameters !== null ? Object.keys(state.Parameters) : [];
  const known = new Set(['FunctionName', 'FunctionName.$', 'Payload', 'Payload.$']);
  const other = parameters.find((key) => !known.has(key));
  if (other !== undefined) throw new UnsupportedDefinitionError(name, `Parameters.${other}`, 'not supported');
  if (!parameters.some((key) => key.startsWith('FunctionName'))) {
    throw new UnsupportedDefinitionError(name, 'Parameters.FunctionName', 'missing');
  }
}

/** As AWS: a token exists only for who waits for it, and who waits must pass it on. */
function checkWaiting(name: string, state: z.infer<typeof task>): void {
  const waits = WAITING_ARN.test(state.Resource);
  const passesToken = JSON.stringify(state.Parameters ?? null).includes(`"${TOKEN_PATH}"`);
  if (waits !== passesToken) {
    const problem = waits ? 'must pass on $$.Task.Token' : 'only .waitForTaskToken has a task token';
    throw new UnsupportedDefinitionError(name, 'Parameters', problem);
  }
  const { HeartbeatSeconds: beat, TimeoutSeconds: timeout } = state;
  if (beat === undefined) return;
  if (!waits)
    throw new UnsupportedDefinitionError(name, 'HeartbeatSeconds', 'only with .waitForTaskToken supported');
  if (timeout !== undefined && beat >= timeout)
    throw new UnsupportedDefinitionError(name, 'HeartbeatSeconds', 'must be smaller than TimeoutSeconds');
}

/** As AWS: `States.ALL` stands alone, and last. */
function checkErrorLists(
  name: string,
  field: string,
  rules: readonly { readonly ErrorEquals: readonly string[] }[],
): void {
  rules.forEach(({ ErrorEquals: errors }, index) => {
    if (errors.includes('States.ALL') && (errors.length > 1 || index < rules.length - 1)) {
      throw new UnsupportedDefinitionError(
        name,
        `${field}.${String(index)}.ErrorEquals`,
        'States.ALL must stand alone and last',
      );
    }
  });
}
