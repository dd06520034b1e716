import { bodyFuzzer } from './body-fuzzer.ts';
import { frontFuzzer } from './front-fuzzer.ts';
import type { Fuzzer } from './fuzzer.ts';
import { objectFuzzer } from './object-fuzzer.ts';
import { recordFuzzer } from './record-fuzzer.ts';
import { specFuzzer } from './spec-fuzzer.ts';

/** All that there is. Some start servers: close them. */
export async function fuzzers(): Promise<readonly Fuzzer[]> {
  return [specFuzzer(), bodyFuzzer(), frontFuzzer(), objectFuzzer(), recordFuzzer()];
}
