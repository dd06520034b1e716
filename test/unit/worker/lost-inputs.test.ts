import { describe, expect, it } from 'vitest';
import {
  AccessDeniedError,
  ConflictError,
  NotFoundError,
  StoreRefusedError,
  StoreUnavailableError,
} from '../../../src/contracts/errors.ts';
import { howLost } from '../../../src/worker/lost-inputs.ts';

const places = {
  zone: { bucket: 'data--use1-az1--x-s3', key: 'k' },
  data: { bucket: 'data', key: 'k' },
};

describe('what a read throws says of the object', () => {
  it.each([
    ['zone', new StoreUnavailableError('no answer'), 'unreachable'],
    ['data', new StoreUnavailableError('no answer'), undefined],
    // S3 has answered: its words are what the attempt fails of, and no output is made again for them.
    ['zone', new StoreRefusedError('reading was refused by S3 for s3://b/k: InvalidRequest: why'), undefined],
    ['data', new StoreRefusedError('reading was refused by S3 for s3://b/k: InvalidRequest: why'), undefined],
    ['zone', new NotFoundError('no such object'), 'missing'],
    ['data', new AccessDeniedError('may not'), 'denied'],
    ['zone', new ConflictError('changed'), 'damaged'],
    ['data', new TypeError('a slip'), undefined],
  ] as const)('in the place "%s": %s', (place, cause, how) => {
    expect(howLost(cause, places[place])).toBe(how);
  });
});
