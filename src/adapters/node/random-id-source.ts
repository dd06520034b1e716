import { createHash, randomBytes } from 'node:crypto';
import type { IdSource } from '../../ports/id-source.ts';

/** Ids from the machine's secure random numbers. */
export class RandomIdSource implements IdSource {
  token(): string {
    return randomBytes(16).toString('hex');
  }

  digest(text: string): string {
    return createHash('sha256').update(text, 'utf8').digest('hex');
  }
}
