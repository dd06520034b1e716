import type { Credentials, Principal } from '../http/principals.ts';
import { evaluateTrust } from '../iam/evaluate.ts';
import { conditionKey, readPolicy, type Statement } from '../iam/policy.ts';
import { type LocalRole, refusalOf, type RoleSessions, sessionArn, type RoleSession } from '../iam/roles.ts';

/** A refusal of the service, with the name that the SDK gives it. */
export class StsError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(code: string, message: string, status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** What was made. */
export interface Assumed {
  readonly credentials: Required<Credentials>;
  readonly expiresAtMs: number;
  readonly arn: string;
  readonly tags: ReadonlyMap<string, string>;
}

const MIN_SECONDS = 900;
const DEFAULT_SECONDS = 3_600;
/** A role assumed by a role lasts an hour at most. */
const CHAINED_SECONDS = 3_600;
const POLICY_CHARS = 2_048;
const MAX_TAGS = 50;
const KNOWN =
  /^(?:Action|Version|RoleArn|RoleSessionName|DurationSeconds|Policy|Tags|Tags\.member\.\d+\.(?:Key|Value))$/;

const invalid = (message: string): StsError => new StsError('ValidationError', message);

/**
 * Makes a session of a role, as AWS STS does: for whom the role trusts and whose own policies allow it.
 *
 * @throws StsError AccessDenied, ValidationError, MalformedPolicyDocument.
 */
export function assumeRole(
  fields: URLSearchParams,
  caller: Principal,
  sessions: RoleSessions,
  nowMs: number,
): Assumed {
  const unknown = [...fields.keys()].find((name) => !KNOWN.test(name));
  if (unknown !== undefined) throw invalid(`the embedded stack does not know the parameter ${unknown}`);
  const arn = fields.get('RoleArn') ?? '';
  const name = fields.get('RoleSessionName') ?? '';
  if (!/^[\w+=,.@-]{2,64}$/.test(name))
    throw invalid('RoleSessionName must be 2 to 64 of a-z, 0-9 and "_+=,.@-"');
  const tags = tagsOf(fields);
  const role = sessions.role(arn);
  authorize({ caller, sessions, role, arn, tags });
  // Whether there is such a role is told to nobody else.
  if (role === undefined) throw denied(caller, 'sts:AssumeRole', arn);
  const seconds = secondsOf(fields, role, sessions.sessionOf(caller) !== undefined);
  const session: RoleSession = { role, name, tags, policy: policyOf(fields) };
  const expiresAtMs = nowMs + seconds * 1_000;
  return {
    credentials: sessions.open(session, { expiresAtMs }),
    expiresAtMs,
    arn: sessionArn(session),
    tags,
  };
}

function tagsOf(fields: URLSearchParams): ReadonlyMap<string, string> {
  const tags = new Map<string, string>();
  for (let number = 1; number <= MAX_TAGS; number++) {
    const key = fields.get(`Tags.member.${String(number)}.Key`);
    if (key === null) break;
    const value = fields.get(`Tags.member.${String(number)}.Value`) ?? '';
    if (
      !/^[\p{L}\p{Z}\p{N}_.:/=+\-@]{1,128}$/u.test(key) ||
      !/^[\p{L}\p{Z}\p{N}_.:/=+\-@]{0,256}$/u.test(value)
    )
      throw invalid(`the tag ${key} has characters or a length that tags cannot have`);
    if (tags.has(key)) throw invalid(`the tag ${key} comes twice`);
    tags.set(key, value);
  }
  return tags;
}

function authorize(request: {
  readonly caller: Principal;
  readonly sessions: RoleSessions;
  readonly role: LocalRole | undefined;
  readonly arn: string;
  readonly tags: ReadonlyMap<string, string>;
}): void {
  const { caller, sessions, role, arn, tags } = request;
  const held = sessions.sessionOf(caller);
  const context = new Map<string, readonly string[]>([
    ...(tags.size === 0 ? [] : [['aws:tagkeys', [...tags.keys()]] as const]),
    ...[...tags].map(([key, value]) => [conditionKey(`aws:RequestTag/${key}`), [value]] as const),
  ]);
  for (const action of ['sts:AssumeRole', ...(tags.size === 0 ? [] : ['sts:TagSession'])]) {
    if (held !== undefined && refusalOf(held, { action, resource: arn }, context) !== undefined)
      throw denied(caller, action, arn);
    const callerArn = held?.role.arn ?? caller.arn;
    if (role !== undefined && evaluateTrust(role.trust, { action, callerArn }, context) !== 'allowed')
      throw denied(caller, action, arn);
  }
}

const denied = ({ arn: caller }: Principal, action: string, arn: string): StsError =>
  new StsError(
    'AccessDenied',
    `User: ${caller} is not authorized to perform: ${action} on resource: ${arn}`,
    403,
  );

function secondsOf(fields: URLSearchParams, role: LocalRole, isChained: boolean): number {
  const seconds = Number(fields.get('DurationSeconds') ?? DEFAULT_SECONDS);
  if (!Number.isInteger(seconds) || seconds < MIN_SECONDS)
    throw invalid(`DurationSeconds must be a whole number of at least ${String(MIN_SECONDS)}`);
  if (seconds > role.maxSessionSeconds)
    throw invalid('The requested DurationSeconds exceeds the MaxSessionDuration set for this role.');
  if (isChained && seconds > CHAINED_SECONDS)
    throw invalid(
      'The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.',
    );
  return seconds;
}

function policyOf(fields: URLSearchParams): readonly Statement[] | undefined {
  const text = fields.get('Policy');
  if (text === null) return undefined;
  if (text.length > POLICY_CHARS)
    throw invalid(`Policy must have at most ${String(POLICY_CHARS)} characters`);
  if (!/^[\t\n\r\u0020-\u00ff]*$/.test(text)) throw invalid('Policy may hold characters of Latin-1 only');
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new StsError('MalformedPolicyDocument', 'The policy is no JSON.');
  }
  const found = readPolicy(document);
  if ('problem' in found) throw new StsError('MalformedPolicyDocument', `${found.path}: ${found.problem}`);
  return found;
}
