import type { RequestName } from '../../src/contracts/requests.ts';
import type { ObjectStore } from '../../src/ports/object-store.ts';

const KEYS_PER_REQUEST = 1_000;

type Count = (name: RequestName, requests: number) => void;

/** A store of objects whose requests are counted as S3's adapter makes them, by the class that they are billed by. */
export function countedObjects(store: ObjectStore, count: Count): ObjectStore {
  const listed = async function* <T>(items: AsyncIterable<T>): AsyncIterable<T> {
    count('list', 1);
    let seen = 0;
    for await (const item of items) {
      if (seen > 0 && seen % KEYS_PER_REQUEST === 0) count('list', 1);
      seen += 1;
      yield item;
    }
  };
  const noted = <T>(name: RequestName, answer: T): T => {
    count(name, 1);
    return answer;
  };
  const isEmpty = (range: { start: number; end: number } | undefined): boolean =>
    range !== undefined && range.end <= range.start;
  return {
    read: (ref, options) =>
      isEmpty(options?.range) ? store.read(ref, options) : noted('get', store.read(ref, options)),
    readAll: (ref, range) =>
      isEmpty(range) ? store.readAll(ref, range) : noted('get', store.readAll(ref, range)),
    head: (ref) => noted('get', store.head(ref)),
    list: (ref) => listed(store.list(ref)),
    write: (ref, body, options) => noted('put', store.write(ref, body, options)),
    copy: (from, to) => noted('put', store.copy(from, to)),
    remove: (bucket, keys) => {
      count('other', Math.ceil(keys.length / KEYS_PER_REQUEST));
      return store.remove(bucket, keys);
    },
    beginUpload: (ref, metadata) => noted('put', store.beginUpload(ref, metadata)),
    uploadPart: (upload, number, body) => noted('put', store.uploadPart(upload, number, body)),
    completeUpload: (upload, parts, options) => noted('put', store.completeUpload(upload, parts, options)),
    abortUpload: (upload) => noted('other', store.abortUpload(upload)),
    listUploads: (ref) => listed(store.listUploads(ref)),
  };
}
