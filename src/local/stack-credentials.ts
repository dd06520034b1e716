import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { Credentials } from './http/principals.ts';
import { createPrivateFile, readPrivateFile } from './private-files.ts';

const fileName = 'credentials.json';
const schema = z.object({
  accessKeyId: z.string().regex(/^AKIA[A-Z2-7]{16}$/),
  secretAccessKey: z.string().regex(/^[A-Za-z0-9+/]{40}$/),
});

/**
 * The owner's keys of the stack in a directory: those of an earlier stack there, else new ones, which no other stack
 * has. They lie in a file that only the owner may read; keys that others might have read are given up.
 *
 * @throws NotPrivateError where that file is a link or another user's.
 */
export async function stackCredentials(stateDir: string): Promise<Credentials> {
  const path = join(stateDir, fileName);
  const kept = parse(await readPrivateFile(path));
  if (kept !== undefined) return kept;
  await rm(path, { force: true });
  const made = parse(await createPrivateFile(path, `${JSON.stringify(newCredentials(), undefined, 2)}\n`));
  if (made === undefined) throw new Error(`${path} was written by another program meanwhile`);
  return made;
}

function parse(text: string | undefined): Credentials | undefined {
  if (text === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined; // Cut short by a crash, say: then nobody knows these keys.
  }
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** In the form of AWS's own, which tools check. 240 random bits. */
function newCredentials(): Credentials {
  const letters = Array.from(randomBytes(16), (byte) => BASE32[byte % BASE32.length] ?? 'A');
  return {
    accessKeyId: `AKIA${letters.join('')}`,
    secretAccessKey: randomBytes(30).toString('base64'),
  };
}
