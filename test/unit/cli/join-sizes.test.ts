import { describe, expect, it } from 'vitest';
import { joinSizes } from '../../../src/cli/join-sizes.ts';

const mb = 1024 * 1024;
const local = (...sizes: readonly number[]) => ({
  uris: [],
  files: sizes.map((sizeBytes, at) => ({
    path: `/data/${String(at)}.csv`,
    sizeBytes,
    heldBytes: sizeBytes,
  })),
});
const untold = { partitions: false, splitBytes: false, slots: 2 };

describe('joinSizes', () => {
  it('has every task hold a small right-hand side, and cuts the left-hand side into larger pieces for that', () => {
    const sides = { left: local(100 * mb, 156 * mb), right: local(20 * mb) };
    expect(joinSizes(sides, {}, untold)).toEqual({ broadcast: true, splitBytes: 128 * mb });
    expect(joinSizes(sides, {}, { ...untold, slots: undefined })).toEqual({ broadcast: true });
    expect(joinSizes(sides, {}, { ...untold, splitBytes: true })).toEqual({ broadcast: true });
    const tiny = { left: local(256 * mb), right: local(mb) };
    expect(joinSizes(tiny, { splitBytes: 32 * mb }, untold)).toEqual({ broadcast: true });
  });

  it('cuts as many pieces for each slot', () => {
    const sides = { left: local(1000 * mb), right: local(20 * mb) };
    expect(joinSizes(sides, {}, { ...untold, slots: 3 })).toEqual({
      broadcast: true,
      splitBytes: Math.ceil((1000 * mb) / 9),
    });
  });

  it('leaves a large right-hand side, one that it cannot see, and what the user says as they are', () => {
    const left = local(256 * mb);
    expect(joinSizes({ left, right: local(20 * mb, 13 * mb) }, {}, untold)).toEqual({});
    const packed = (heldBytes?: number) => ({
      uris: [],
      files: [{ path: 'right.csv.gz', sizeBytes: mb, ...(heldBytes === undefined ? {} : { heldBytes }) }],
    });
    expect(joinSizes({ left, right: packed(158 * mb) }, {}, untold)).toEqual({});
    expect(joinSizes({ left, right: packed() }, {}, untold)).toEqual({});
    expect(joinSizes({ left, right: packed(20 * mb) }, {}, untold)).toMatchObject({ broadcast: true });
    expect(joinSizes({ left, right: { uris: ['s3://b/right/'], files: [] } }, {}, untold)).toEqual({});
    const many = { uris: ['s3://b/right/'], files: local(1, 1, 1, 1, 1).files };
    expect(joinSizes({ left, right: many }, {}, untold)).toEqual({});
    const right = local(mb);
    expect(joinSizes({ left, right }, {}, { ...untold, partitions: true })).toEqual({});
    expect(joinSizes({ left, right }, { broadcast: true }, untold)).toEqual({});
    expect(joinSizes({ left, right }, { format: 'ndjson' }, untold)).toEqual({});
    expect(joinSizes({ left, right }, { rows: 'ndjson' }, untold)).toEqual({});
  });

  it('sees one object of S3', () => {
    const right = { uris: ['s3://b/right.csv'], files: local(mb).files };
    const left = { uris: ['s3://b/left/'], files: [] };
    expect(joinSizes({ left, right }, {}, untold)).toEqual({ broadcast: true });
  });
});
