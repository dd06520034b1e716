import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { badInput, systemCode, systemReason } from './failures.ts';

/**
 * A new directory among the machine's temporary files, which its maker removes.
 *
 * @param prefix - of its name.
 * @param otherwise - what else would help than another place for all temporary files.
 * @throws InvalidInputError where there can be none, as that place is missing, full or read-only.
 */
export async function makeTemporaryDirectory(prefix: string, otherwise = ''): Promise<string> {
  const place = tmpdir();
  try {
    return await mkdtemp(join(place, prefix));
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw badInput(
      `no directory can be made in ${place}: ${systemReason(error)}; name another place with TMPDIR${otherwise}`,
      error,
    );
  }
}
