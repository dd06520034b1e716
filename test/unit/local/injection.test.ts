import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { describeInjection, parseInjection } from '../../../src/local/inject/injection.ts';

/** Nothing happens to objects. */
const whole = {
  memoryHogs: 0,
  interruptions: 0,
  lostObjects: 0,
  corruptObjects: 0,
  lostInvocations: 0,
  duplicateInvocations: 0,
};

describe('an injection', () => {
  it.each([
    ['slow=8x2', { slow: { factor: 8, nodes: 2 }, kills: 0, throttle: 0, ...whole, seed: 1 }],
    ['slow=1.5x256', { slow: { factor: 1.5, nodes: 256 }, kills: 0, throttle: 0, ...whole, seed: 1 }],
    ['kill=1', { slow: undefined, kills: 1, throttle: 0, ...whole, seed: 1 }],
    ['memory-hog=2', { slow: undefined, kills: 0, throttle: 0, ...whole, memoryHogs: 2, seed: 1 }],
    ['spot=2', { slow: undefined, kills: 0, throttle: 0, ...whole, interruptions: 2, seed: 1 }],
    ['throttle=0.2', { slow: undefined, kills: 0, throttle: 0.2, ...whole, seed: 1 }],
    ['throttle=.95', { slow: undefined, kills: 0, throttle: 0.95, ...whole, seed: 1 }],
    [
      'slow=8x2,kill=1,throttle=0.2,seed=7',
      { slow: { factor: 8, nodes: 2 }, kills: 1, throttle: 0.2, ...whole, seed: 7 },
    ],
    [
      'slow-read=0.25@1.5',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        slowReads: { share: 0.25, delayMs: 1_500 },
      },
    ],
    [
      'cold-start=.5@2.5',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        coldStarts: { share: 0.5, delayMs: 2_500 },
      },
    ],
    [
      'pause=0.1@60',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        pauses: { share: 0.1, delayMs: 60_000 },
      },
    ],
    [
      'skew=0.25@86400',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        skews: { share: 0.25, offMs: 86_400_000 },
      },
    ],
    [
      'lose-object=2,corrupt-object=1000',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        lostObjects: 2,
        corruptObjects: 1_000,
      },
    ],
    [
      'lose-invocation=1000,duplicate-invocation=3',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        lostInvocations: 1_000,
        duplicateInvocations: 3,
      },
    ],
    [
      'lose-zone=use1-az2@3,slow-zone=use1-az1@2.5',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        lostZone: { zone: 'use1-az2', afterMs: 3_000 },
        slowZone: { zone: 'use1-az1', factor: 2.5 },
      },
    ],
    [
      'lose-zone=us-east-1c@3',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        lostZone: { zone: 'use1-az3', afterMs: 3_000 },
      },
    ],
    [
      // Of another region: the stack says which zones it has.
      'lose-zone=us-west-2a@3',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        lostZone: { zone: 'us-west-2a', afterMs: 3_000 },
      },
    ],
    [
      'slow-zone=us-east-1a@6',
      {
        ...{ slow: undefined, kills: 0, throttle: 0, ...whole, seed: 1 },
        slowTaskZone: { zone: 'us-east-1a', factor: 6 },
      },
    ],
    [' seed = 0 , kill = 1000 ', { slow: undefined, kills: 1_000, throttle: 0, ...whole, seed: 0 }],
  ])('is read from %j', (text, expected) => {
    expect(parseInjection(text)).toEqual(expected);
  });

  it.each([
    [
      '',
      /^"" must be one of slow=FACTORxNODES, kill=N, memory-hog=N, spot=N, throttle=SHARE, slow-read=SHARE@SECONDS, cold-start=SHARE@SECONDS, pause=SHARE@SECONDS, skew=SHARE@SECONDS, lose-object=N, corrupt-object=N, lose-invocation=N, duplicate-invocation=N, lose-zone=ZONE@SECONDS, slow-zone=ZONE@FACTOR and seed=N$/,
    ],
    ['kill=1,', /^"" must be one of/],
    ['kill', /^"kill" must be one of/],
    ['lose=1', /^"lose=1" must be one of/],
    ['Kill=1', /^"Kill=1" must be one of/],
    ['kill=1,kill=2', /^"kill=2" is given twice/],
    ['seed=7', /^"seed=7" injects nothing/],
    ['seed=,kill=1', /^"seed=" must be a whole number from 0 to 4294967295$/],
    ['seed=4294967296,kill=1', /^"seed=4294967296" must be a whole number/],
    ['lose-object=0', /^"lose-object=0" must be a whole number from 1 to 1000$/],
    ['corrupt-object=x', /^"corrupt-object=x" must be a whole number from 1 to 1000$/],
    ['lose-invocation=0', /^"lose-invocation=0" must be a whole number from 1 to 1000$/],
    ['duplicate-invocation=1001', /^"duplicate-invocation=1001" must be a whole number from 1 to 1000$/],
    [
      'lose-zone=use1-az2',
      /^"lose-zone=use1-az2" must be ZONE@SECONDS, the id or the name of a zone and at most 3600 seconds/,
    ],
    ['lose-zone=a@1', /^"lose-zone=a@1" must be ZONE@SECONDS/],
    ['lose-zone=use1-az2@3601', /^"lose-zone=use1-az2@3601" must be/],
    [
      'slow-zone=use1-az2@1',
      /^"slow-zone=use1-az2@1" must be ZONE@FACTOR, the id of a zone for its storage or its name for its tasks on Fargate, and a factor above 1/,
    ],
    ['slow-zone=use1-az2@51', /^"slow-zone=use1-az2@51" must be/],
    ['slow-zone=us-east-1a@51', /^"slow-zone=us-east-1a@51" must be/],
    ['slow-zone=us-east-1@5', /^"slow-zone=us-east-1@5" must be/],
    ['lose-zone=us-east-1@5', /^"lose-zone=us-east-1@5" must be ZONE@SECONDS/],
    ['kill=0', /^"kill=0" must be a whole number from 1 to 1000$/],
    ['memory-hog=0', /^"memory-hog=0" must be a whole number from 1 to 1000$/],
    ['kill=1001', /^"kill=1001" must be/],
    ['kill=1.5', /^"kill=1.5" must be/],
    ['kill=-1', /^"kill=-1" must be/],
    ['slow=8', /^"slow=8" must be FACTORxNODES, a factor above 1 and at most 50 and 1 to 256 nodes/],
    ['slow=1x2', /^"slow=1x2" must be FACTORxNODES/],
    ['slow=51x2', /^"slow=51x2" must be/],
    ['slow=8x0', /^"slow=8x0" must be/],
    ['slow=8x257', /^"slow=8x257" must be/],
    ['slow=x', /^"slow=x" must be/],
    ['slow=8x2=3', /^"slow=8x2=3" must be/],
    [
      'slow-read=0.2',
      /^"slow-read=0.2" must be SHARE@SECONDS, a share of the reads above 0 and at most 0.95/,
    ],
    ['slow-read=1@1', /^"slow-read=1@1" must be/],
    ['slow-read=0.2@61', /^"slow-read=0.2@61" must be/],
    ['slow-read=0.2@0', /^"slow-read=0.2@0" must be/],
    [
      'cold-start=2@1',
      /^"cold-start=2@1" must be SHARE@SECONDS, a share of the starts above 0 and at most 0.95 and at most 10 seconds, such as cold-start=0.1@5$/,
    ],
    ['cold-start=0.2@11', /^"cold-start=0.2@11" must be/],
    [
      'pause=1@1',
      /^"pause=1@1" must be SHARE@SECONDS, a share of the works above 0 and at most 0.95 and at most 60 seconds, such as pause=0.1@5$/,
    ],
    [
      'skew=0.1@86401',
      /^"skew=0.1@86401" must be SHARE@SECONDS, a share of the workers above 0 and at most 0.95 and at most 86400 seconds, such as skew=0.1@5$/,
    ],
    ['throttle=0', /^"throttle=0" must be a share of the launches, above 0 and at most 0.95/],
    ['throttle=1', /^"throttle=1" must be/],
    ['throttle=', /^"throttle=" must be/],
    ['throttle=.', /^"throttle=." must be/],
    ['throttle=20%', /^"throttle=20%" must be/],
    ['throttle=1e-1', /^"throttle=1e-1" must be/],
  ])('is refused where it is %j', (text, message) => {
    expect(() => parseInjection(text)).toThrow(InvalidInputError);
    expect(() => parseInjection(text)).toThrow(message);
  });

  it('is told in its own notation, which reads back as the same', () => {
    const text =
      'slow=2.5x2,kill=1,memory-hog=3,spot=2,throttle=0.2,slow-read=0.1@1.5,cold-start=0.2@3,pause=0.5@0.5,skew=0.5@7200,seed=7';
    expect(describeInjection(parseInjection(text))).toBe(text);
    const objects = 'lose-object=3,corrupt-object=1,seed=7';
    expect(describeInjection(parseInjection(objects))).toBe(objects);
    const invocations = 'lose-invocation=3,duplicate-invocation=1,seed=7';
    expect(describeInjection(parseInjection(invocations))).toBe(invocations);
    expect(describeInjection(parseInjection('kill=3'))).toBe('kill=3,seed=1');
    const rare = 'throttle=0.00000025,slow-read=0.000000001@5,skew=0.0000001@60,seed=1';
    expect(describeInjection(parseInjection(rare))).toBe(rare);
  });
});
