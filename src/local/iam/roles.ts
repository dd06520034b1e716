import { randomBytes } from 'node:crypto';
import type { Authorize, Credentials, Principal, PrincipalRegistry } from '../http/principals.ts';
import { evaluate, type Wish } from './evaluate.ts';
import type { Context } from './pattern.ts';
import { conditionKey, type Statement, type TrustStatement } from './policy.ts';
import { type Surroundings, wishesOf } from './wishes.ts';

/** A role as the template describes it. */
export interface LocalRole {
  readonly name: string;
  readonly arn: string;
  readonly trust: readonly TrustStatement[];
  /** Of all its policies. */
  readonly statements: readonly Statement[];
  readonly maxSessionSeconds: number;
}

/** Someone who acts as a role for a while. */
export interface RoleSession {
  readonly role: LocalRole;
  readonly name: string;
  readonly tags: ReadonlyMap<string, string>;
  /** Bounds what the role allows; undefined without a policy of its own. */
  readonly policy: readonly Statement[] | undefined;
}

/** Keys that look like those of AWS's sessions. */
const KEY_LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const KEY_LENGTH = 16;

/** Draws the keys of a session. */
export function drawKeys(): Required<Credentials> {
  const letters = [...randomBytes(KEY_LENGTH)].map((byte) => KEY_LETTERS[byte % KEY_LETTERS.length]);
  return {
    accessKeyId: `ASIA${letters.join('')}`,
    secretAccessKey: randomBytes(30).toString('base64'),
    sessionToken: randomBytes(48).toString('base64'),
  };
}

/** The ARN of a session: what messages call its holder. */
export function sessionArn({ role, name }: RoleSession): string {
  return `${role.arn.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')}/${name}`;
}

/** Whether a session may do one thing; undefined if so, else why not, in the words of AWS. */
export function refusalOf(session: RoleSession, wish: Wish, context: Context): string | undefined {
  const tags = [...session.tags].map(([key, value]): [string, string[]] => [
    conditionKey(`aws:PrincipalTag/${key}`),
    [value],
  ]);
  const whole = new Map([...context, ...(wish.context ?? []), ...tags]);
  const byRole = evaluate(session.role.statements, wish, whole);
  const bySession = session.policy === undefined ? 'allowed' : evaluate(session.policy, wish, whole);
  if (byRole === 'allowed' && bySession === 'allowed') return undefined;
  const isSaid = byRole === 'denied' || bySession === 'denied';
  const policy = byRole === 'allowed' ? 'session' : 'identity-based';
  const because = isSaid
    ? `with an explicit deny in ${policy === 'session' ? 'a session' : 'an identity-based'} policy`
    : `because no ${policy} policy allows the ${wish.action} action`;
  return (
    `User: ${sessionArn(session)} is not authorized to perform: ${wish.action} ` +
    `on resource: ${wish.resource} ${because}`
  );
}

/** Everything that a request of the session wants must be allowed. */
const authorizeFor =
  (session: RoleSession, around: Surroundings): Authorize =>
  (facts) => {
    const { wishes, context } = wishesOf(facts, around);
    for (const wish of wishes) {
      const refusal = refusalOf(session, wish, context);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };

/** Who acts as which role: keys of the processes that run with one, and of sessions that were made. */
export class RoleSessions {
  private readonly registry: PrincipalRegistry;
  private readonly around: Surroundings;
  private readonly roles: ReadonlyMap<string, LocalRole>;
  private readonly holders = new WeakMap<Principal, RoleSession>();

  constructor(registry: PrincipalRegistry, roles: readonly LocalRole[], around: Surroundings) {
    this.registry = registry;
    this.around = around;
    this.roles = new Map(roles.map((role) => [role.arn, role]));
  }

  /** The role of an ARN; undefined where there is none. */
  role(arn: string): LocalRole | undefined {
    return this.roles.get(arn);
  }

  /** The session that a caller acts in; undefined for whoever no policy binds. */
  sessionOf(principal: Principal): RoleSession | undefined {
    return this.holders.get(principal);
  }

  /** Keys by which requests are the session's, until their end where they have one; new ones unless they are given. */
  open(
    session: RoleSession,
    {
      expiresAtMs,
      credentials = drawKeys(),
    }: { readonly expiresAtMs?: number; readonly credentials?: Required<Credentials> } = {},
  ): Required<Credentials> {
    const principal: Principal = {
      name: session.role.name,
      arn: sessionArn(session),
      authorize: authorizeFor(session, this.around),
    };
    this.holders.set(principal, session);
    this.registry.add({ credentials, principal, ...(expiresAtMs === undefined ? {} : { expiresAtMs }) });
    return credentials;
  }
}
