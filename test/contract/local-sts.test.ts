import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { assumeRoleBy } from '../../src/adapters/aws/clients.ts';
import type { RoleRequest } from '../../src/adapters/aws/sts-job-access.ts';
import { keyVariables, ownerOf, PrincipalRegistry } from '../../src/local/http/principals.ts';
import { readPolicy, readTrust } from '../../src/local/iam/policy.ts';
import { type LocalRole, RoleSessions } from '../../src/local/iam/roles.ts';
import { startStsServer, type StsServer } from '../../src/local/sts/server.ts';

const OWNER = { accessKeyId: 'AKIAOWNER', secretAccessKey: 'secret-of-the-owner' };
const region = 'us-east-1';
const jobRole = 'arn:aws:iam::000000000000:role/jobs';
const schedulerRole = 'arn:aws:iam::000000000000:role/scheduler';

function known<T extends object>(found: readonly T[] | { readonly problem: string }): readonly T[] {
  if ('problem' in found) throw new Error(found.problem);
  return found;
}

const roles: readonly LocalRole[] = [
  {
    name: 'scheduler',
    arn: schedulerRole,
    trust: [],
    statements: known(
      readPolicy({
        Version: '2012-10-17',
        Statement: { Effect: 'Allow', Action: ['sts:AssumeRole', 'sts:TagSession'], Resource: jobRole },
      }),
    ),
    maxSessionSeconds: 3_600,
  },
  {
    name: 'worker',
    arn: 'arn:aws:iam::000000000000:role/worker',
    trust: [],
    statements: [],
    maxSessionSeconds: 3_600,
  },
  {
    name: 'jobs',
    arn: jobRole,
    trust: known(
      readTrust({
        Version: '2012-10-17',
        Statement: {
          Effect: 'Allow',
          Action: ['sts:AssumeRole', 'sts:TagSession'],
          Principal: { AWS: schedulerRole },
          Condition: { StringLike: { 'aws:RequestTag/outrider-job': '?*' } },
        },
      }),
    ),
    statements: [],
    maxSessionSeconds: 7_200,
  },
];

let dir: string;
let registry: PrincipalRegistry;
let sessions: RoleSessions;
let server: StsServer;

async function start(): Promise<void> {
  registry = new PrincipalRegistry();
  registry.add({ credentials: OWNER, principal: ownerOf(OWNER) });
  sessions = new RoleSessions(registry, roles, {
    region,
    accountId: '000000000000',
    partitionKeys: new Map(),
    taskRoles: new Map(),
  });
  const sessionsPath = join(dir, 'sessions.ndjson');
  server = await startStsServer({ credentials: OWNER, principals: registry, region, sessions, sessionsPath });
}

const request: RoleRequest = {
  RoleArn: jobRole,
  RoleSessionName: 'a-0123456789ab',
  DurationSeconds: 3_600,
  Tags: [{ Key: 'outrider-job', Value: 'a-0123456789ab' }],
  Policy: '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}',
};

/** Asks as whoever runs with a role, by the adapter of the scheduler. */
async function assumeAs(roleName: string, more: Partial<RoleRequest> = {}) {
  const role = roles.find(({ name }) => name === roleName);
  const keys =
    role === undefined ? OWNER : sessions.open({ role, name: 'fn', tags: new Map(), policy: undefined });
  const variables: Record<string, string> = { ...keyVariables(keys), AWS_ENDPOINT_URL_STS: server.endpoint };
  const before = { ...process.env };
  Object.assign(process.env, { AWS_SESSION_TOKEN: undefined }, variables);
  if (variables['AWS_SESSION_TOKEN'] === undefined) delete process.env['AWS_SESSION_TOKEN'];
  try {
    return await assumeRoleBy({ region, env: {} })({ ...request, ...more });
  } finally {
    process.env = before;
  }
}

const refusal = async (outcome: Promise<unknown>): Promise<string> =>
  outcome.then(
    () => 'served',
    (cause: unknown) => (cause instanceof Error ? cause.name : String(cause)),
  );

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'outrider-sts-'));
  await start();
});
afterEach(async () => {
  await server.close();
  await rm(dir, { recursive: true, force: true });
});

describe('AssumeRole', () => {
  it('gives whom the role trusts a session with its tags, for as long as was asked', async () => {
    const session = await assumeAs('scheduler');
    const entry = registry.find(session.accessKeyId);
    expect(entry).toMatchObject({
      credentials: { secretAccessKey: session.secretAccessKey, sessionToken: session.sessionToken },
      principal: { arn: 'arn:aws:sts::000000000000:assumed-role/jobs/a-0123456789ab' },
      expiresAtMs: session.until,
    });
    const held = entry === undefined ? undefined : sessions.sessionOf(entry.principal);
    expect([...(held?.tags ?? [])]).toEqual([['outrider-job', 'a-0123456789ab']]);
    expect(held?.policy).toHaveLength(1);
  });

  it.each([
    ['a role that the policies of its own do not allow it', 'worker', {}, 'AccessDenied'],
    ['the owner, whom the role does not trust', 'owner', {}, 'AccessDenied'],
    ['the scheduler for a role that is not there', 'scheduler', { RoleArn: `${jobRole}2` }, 'AccessDenied'],
    ['the scheduler without the tag that the role wants', 'scheduler', { Tags: [] }, 'AccessDenied'],
    ['the scheduler with another tag', 'scheduler', { Tags: [{ Key: 'job', Value: 'a' }] }, 'AccessDenied'],
    [
      'a tag that would be a pattern',
      'scheduler',
      { Tags: [{ Key: 'outrider-job', Value: 'a*' }] },
      'ValidationError',
    ],
    ['more than an hour for a role of a role', 'scheduler', { DurationSeconds: 7_200 }, 'ValidationError'],
    ['less than a quarter of an hour', 'scheduler', { DurationSeconds: 60 }, 'ValidationError'],
    [
      'a policy that is too long',
      'scheduler',
      { Policy: `${request.Policy}${' '.repeat(2_000)}` },
      'ValidationError',
    ],
    ['a policy that is none', 'scheduler', { Policy: '{}' }, 'MalformedPolicyDocument'],
    ['a policy with characters beyond Latin-1', 'scheduler', { Policy: '"日"' }, 'ValidationError'],
  ])('refuses %s', async (_, who, more, name) => {
    expect((await refusal(assumeAs(who, more))).replace(/Exception$/, '')).toBe(name);
  });

  it('knows its sessions again when it starts anew, those that have ended not', async () => {
    const session = await assumeAs('scheduler');
    const path = join(dir, 'sessions.ndjson');
    expect((await stat(path)).mode & 0o077).toBe(0);
    const line = await readFile(path, 'utf8');
    const ended = line
      .replace(/"expiresAtMs":\d+/, '"expiresAtMs":1')
      .replace(session.accessKeyId, 'ASIAENDED');
    await writeFile(path, `${line}${ended}{"torn`);
    await server.close();
    await start();
    const entry = registry.find(session.accessKeyId);
    expect(entry).toMatchObject({
      credentials: { sessionToken: session.sessionToken },
      expiresAtMs: session.until,
    });
    const held = entry === undefined ? undefined : sessions.sessionOf(entry.principal);
    expect([...(held?.tags ?? [])]).toEqual([['outrider-job', 'a-0123456789ab']]);
    expect(registry.find('ASIAENDED')).toBeUndefined();
    expect(await readFile(path, 'utf8')).toBe(line);
  });
});
