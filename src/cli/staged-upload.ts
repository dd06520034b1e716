import { carriedKey } from '../contracts/task-files.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { type Carried, uploadCarried } from './carried.ts';
import { ServiceUnavailableError } from './failures.ts';
import { keepUse, type KeptUse } from './staged-use.ts';
import { type StagedSet, uploadStaged } from './staging.ts';

/** What a job needs in the data bucket. */
export interface Needed {
  readonly sets: readonly StagedSet[];
  readonly carried: readonly Carried[];
}

/** Times that all is looked for again before this gives up. */
const mostRounds = 4;

/**
 * Uploads what a job needs and is not there, and says as long as that takes, and until it is settled, that it is about to
 * be used. When it returns all of it was there a moment ago: a machine that slept meanwhile has not said so in time, and
 * whoever clears up has taken away what had come over.
 *
 * @throws InvalidInputError where a file cannot be read, ServiceUnavailableError where something is missing each time.
 */
export async function uploadNeeded(
  store: ObjectStore,
  bucket: string,
  { sets, carried }: Needed,
  { signal, onBytes }: { readonly signal: AbortSignal; readonly onBytes?: (more: number) => void },
): Promise<KeptUse> {
  const use = await keepUse(store, bucket, [
    ...sets.map(({ prefix }) => prefix),
    ...carried.map(({ sha256 }) => carriedKey(sha256)),
  ]);
  try {
    for (let round = 0; round < mostRounds; round++) {
      if (round > 0) await use.renew();
      let missing = 0;
      for (const set of sets)
        missing += await uploadStaged(store, set, signal, round === 0 ? onBytes : undefined);
      missing += await uploadCarried(store, bucket, carried, { signal });
      if (missing === 0) return use;
    }
    throw new ServiceUnavailableError(
      `what the job needs was taken away from the local stack ${String(mostRounds)} times while it was uploaded: submit it again`,
    );
  } catch (error) {
    use.settle();
    throw error;
  }
}
