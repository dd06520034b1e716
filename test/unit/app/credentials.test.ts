import { describe, expect, it } from 'vitest';
import { checkSpec } from '../../../src/app/check-spec.ts';
import { parseInput } from '../../../src/contracts/invalid.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import type { JobSpec } from '../../../src/contracts/job-spec.ts';

const specOf = (stage: object): JobSpec =>
  parseInput(jobSpecSchema, {
    name: 'job',
    stages: [{ name: 'one', inputs: [{ s3: ['s3://bucket/key'] }], ...stage }],
  });
const code = { s3: 's3://bucket/code.mjs', sha256: '0'.repeat(64) };
const accepts = { checkOperator: () => undefined };

describe('a stage that asks for credentials', () => {
  it.each([[{ code, credentials: true }], [{ operator: 'exec', credentials: true }]])(
    'is refused where the deployment gives none, and the field is named: %j',
    (stage) => {
      expect(() => {
        checkSpec(specOf(stage), accepts);
      }).toThrow('stages[0].credentials must be left out: this deployment gives user code and programs no');
      expect(() => {
        checkSpec(specOf(stage), { ...accepts, givesCredentials: false });
      }).toThrow('stages[0].credentials');
    },
  );

  it('is accepted where the deployment gives them, and one that asks for none everywhere', () => {
    checkSpec(specOf({ code, credentials: true }), { ...accepts, givesCredentials: true });
    checkSpec(specOf({ code, credentials: false }), accepts);
    checkSpec(specOf({ code }), accepts);
  });

  it('is refused where nothing of the user runs', () => {
    expect(() => specOf({ operator: 'grep', credentials: true })).toThrow(
      /stages\.0\.credentials|stages\[0\]\.credentials/,
    );
  });
});
