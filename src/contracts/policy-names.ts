/** Names of policy sets, as scripts and users write them (design §8). */
export const policyNames = [
  'none',
  'hadoop',
  'dryad',
  'mapreduce',
  'late',
  'mantri',
  'dolly',
  'spark',
  'hadoop2',
  'flink',
  'cubed',
  'outrider',
] as const;
export type PolicyName = (typeof policyNames)[number];

/** How stragglers are treated where nothing is said. */
export const defaultPolicy = 'outrider' satisfies PolicyName;
