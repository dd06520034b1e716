import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { policyNames } from '../../src/contracts/policy-names.ts';
import type { AdversarialStage } from '../support/adversarial-stages.ts';
import { timesWithoutCopies, wrongsOf } from '../support/stage-verdict.ts';

/** What `npm run test:stages` has found, kept as drawn then. */
const folder = new URL('../fixtures/stages/found/', import.meta.url);
const files = readdirSync(folder);

it.each(files)('%s ends under every policy, not much later than without copies', async (file) => {
  const stage = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as AdversarialStage;
  const withoutMs = await timesWithoutCopies(stage);
  expect(withoutMs).toBeDefined();
  const wrong: string[] = [];
  for (const policy of policyNames.filter((name) => name !== 'none'))
    for (const each of await wrongsOf(stage, policy, withoutMs)) wrong.push(`${policy}: ${each}`);
  expect(wrong).toEqual([]);
});
