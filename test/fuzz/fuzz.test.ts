import { afterAll, describe, expect, it } from 'vitest';
import { tryInputs } from './fuzzer.ts';
import { fuzzers } from './fuzzers.ts';

const all = await fuzzers();

afterAll(async () => {
  for (const fuzzer of all) await fuzzer.close?.();
});

describe('whatever a seed draws', { timeout: 300_000 }, () => {
  it.each(all)('$name: $what', async (fuzzer) => {
    expect(await tryInputs(fuzzer, { seed: 20, runs: fuzzer.runs })).toEqual({ held: fuzzer.runs });
  });
});
