import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { PolicyConfigInput } from '../../src/contracts/policy-config.ts';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { policyNames } from '../../src/contracts/policy-names.ts';
import { coreutils } from '../support/coreutils.ts';
import type { Draw } from './draw.ts';
import type { Material } from './inputs.ts';

/** A job to run and what its output must be by programs that share no code with ours. */
export interface Workload {
  readonly kind: string;
  /** Objects that it reads, bundles of code among them. */
  readonly materials: readonly Material[];
  /** The stages, given where each material lies. */
  stages(uriOf: (name: string) => string): JobSpecInput['stages'];
  /** What is wrong with the parts of its output, laid end to end; undefined where nothing is. */
  differs(output: Buffer): string | undefined;
  /** Whether the job may fail by what it is. */
  readonly mayFail?: boolean;
}

/** Where the tasks of a job run, and under which policy. */
export interface Terms {
  readonly policy: PolicyName;
  readonly policyConfig?: PolicyConfigInput;
  readonly kind: 'lambda' | 'fargate';
}

/** Copies at once and late ones, though tasks are short and the slots few. */
export function drawTerms(draw: Draw): Terms {
  const kind = draw.weighted([
    [5, 'lambda'],
    [1, 'fargate'],
  ] as const);
  const policy = draw.chance(0.3) ? draw.pick(['dolly', 'outrider'] as const) : draw.pick(policyNames);
  const dolly = { budgetShare: 1, utilizationCeiling: 1, mostClones: 2, minAttempts: 1_000_000 };
  return { policy, kind, ...(draw.chance(0.7) ? { policyConfig: { dolly } } : {}) };
}

/** Where two texts of bytes part, in words. */
export function firstDifference(got: Buffer, expected: Buffer): string | undefined {
  if (got.equals(expected)) return undefined;
  const most = Math.min(got.length, expected.length);
  let at = 0;
  while (at < most && got[at] === expected[at]) at++;
  const around = (bytes: Buffer): string =>
    JSON.stringify(bytes.subarray(Math.max(0, at - 20), at + 40).toString('latin1'));
  return `${got.length} bytes where ${expected.length} were expected, first at byte ${at}: ${around(got)} for ${around(expected)}`;
}

/** Compares lines as a bag: what is right where parts have no order among them. */
export const linesDiffer = (got: Buffer, expected: Buffer): string | undefined =>
  firstDifference(coreutils('sort', [], got), coreutils('sort', [], expected));
