import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { synthesized, type SynthesizedSystem } from './synthesized.ts';

const policySchema = z.looseObject({
  PolicyDocument: z.object({
    Statement: z.array(z.looseObject({ Action: z.union([z.string(), z.array(z.string())]) })),
  }),
});

/** Statements on keys, by the role that has them. */
const keyStatements = (system: SynthesizedSystem): (readonly [string, unknown])[] =>
  system
    .resources('AWS::IAM::Policy')
    .flatMap(({ logicalId, properties }) =>
      policySchema
        .parse(properties)
        .PolicyDocument.Statement.filter(({ Action }) => JSON.stringify(Action).includes('kms:'))
        .map((statement) => [logicalId.replace(/[Rr]ole.*/, ''), statement] as const),
    )
    .toSorted(([a], [b]) => (a < b ? -1 : 1));

describe('keys of buckets', () => {
  const keys = ['a', 'mrk-b'].map((id) => `arn:aws:kms:eu-west-1:123456789012:key/${id}`);

  it('may be used by those that read or publish what lies there, through S3 alone', () => {
    const use = (Action: unknown): object => ({
      Effect: 'Allow',
      Action,
      Resource: keys,
      Condition: { StringLike: { 'kms:ViaService': 's3.*.amazonaws.com*' } },
    });
    const both = use(['kms:Decrypt', 'kms:GenerateDataKey']);
    expect(keyStatements(synthesized({ kmsKeys: keys.join(',') }))).toEqual([
      ['JobAccess', both],
      ['fail', both],
      ['finish', both],
      ['plan', use('kms:Decrypt')],
      ['settle', both],
      ['sweep', both],
    ]);
  });

  it('are none where none are named, and must be ARNs', () => {
    expect(keyStatements(synthesized())).toEqual([]);
    expect(() => synthesized({ kmsKeys: 'alias/mine' })).toThrow(
      /^context "kmsKeys": must be ARNs of keys such as arn:aws:kms:.*, not "alias\/mine"$/,
    );
  });
});
