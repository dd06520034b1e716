import { appendFile, readFile, rename, writeFile } from 'node:fs/promises';
import * as z from 'zod';
import { readPolicy } from '../iam/policy.ts';
import type { RoleSessions } from '../iam/roles.ts';

const keptSession = z.object({
  roleArn: z.string(),
  name: z.string(),
  tags: z.array(z.tuple([z.string(), z.string()])),
  /** The text of its policy. */
  policy: z.string().optional(),
  credentials: z.object({ accessKeyId: z.string(), secretAccessKey: z.string(), sessionToken: z.string() }),
  expiresAtMs: z.number(),
});

/** A session as it outlives its stack: jobs that go on when the stack starts again go on with theirs. */
export type KeptSession = z.output<typeof keptSession>;

/** One line a session, readable by the stack's owner alone. */
const MODE = 0o600;

function parsed(line: string): KeptSession | undefined {
  try {
    return keptSession.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined; // The last line of a stack that was killed while it wrote.
  }
}

/** The sessions of the stacks that were here before, in a file that holds those that still last. */
export class SessionFile {
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Makes the keys good again of all that have not ended, and whose role is still there; forgets the others. */
  async restore(sessions: RoleSessions, nowMs: number): Promise<void> {
    const text = await readFile(this.path, 'utf8').catch(() => '');
    const lasting = text
      .split('\n')
      .map(parsed)
      .filter((kept) => kept !== undefined && kept.expiresAtMs > nowMs && restored(sessions, kept));
    const next = `${this.path}.next`;
    await writeFile(next, lasting.map((kept) => `${JSON.stringify(kept)}\n`).join(''), { mode: MODE });
    await rename(next, this.path);
  }

  async add(kept: KeptSession): Promise<void> {
    await appendFile(this.path, `${JSON.stringify(kept)}\n`, { mode: MODE });
  }
}

function restored(
  sessions: RoleSessions,
  { roleArn, name, tags, policy, credentials, expiresAtMs }: KeptSession,
): boolean {
  const role = sessions.role(roleArn);
  if (role === undefined) return false;
  const statements = policy === undefined ? undefined : readPolicy(JSON.parse(policy));
  if (statements !== undefined && 'problem' in statements) return false;
  sessions.open({ role, name, tags: new Map(tags), policy: statements }, { expiresAtMs, credentials });
  return true;
}
