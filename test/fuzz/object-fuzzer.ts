import fc from 'fast-check';
import type { ObjectRef } from '../../src/contracts/keys.ts';
import { finalJobStates } from '../../src/contracts/records.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { coreutils, countWords } from '../support/coreutils.ts';
import { MemoryHost } from '../support/memory-host.ts';
import { type Fuzzer, hold } from './fuzzer.ts';

/** What happens to an object while a job runs. */
interface Harm {
  /** Number of the launch at which it happens. */
  readonly launch: number;
  /** Number of the object, modulo how many there are; sources apart from the job's own. */
  readonly at: number;
  readonly whose: 'source' | 'job';
  readonly how: 'flip' | 'cut' | 'grow' | 'empty' | 'remove' | 'replace';
  readonly byte: number;
}

const arbHarm: fc.Arbitrary<Harm> = fc.record({
  launch: fc.nat(8),
  at: fc.nat(1_000),
  whose: fc.constantFrom('source', 'job', 'job'),
  how: fc.constantFrom('flip', 'flip', 'cut', 'grow', 'empty', 'remove', 'replace'),
  byte: fc.nat(10_000),
});

const texts = [
  'the cat sat\non the mat\n',
  'a b c\r\nthe \0 end',
  '',
  'one two three four five six seven\n'.repeat(8),
];
const kinds = {
  wordcount: (output: Buffer) =>
    coreutils('sort', [], output).equals(Buffer.from(countWords(bodies), 'latin1')),
  sort: (output: Buffer) =>
    output.equals(
      coreutils('sort', [], Buffer.concat(bodies.map((body) => Buffer.concat([body, ended(body)])))),
    ),
} as const;
const bodies = texts.map((text) => Buffer.from(text, 'latin1'));
const ended = (body: Buffer): Buffer => Buffer.from(body.length === 0 || body.at(-1) === 10 ? '' : '\n');

function harmed(body: Buffer, { how, byte }: Harm): Buffer {
  const copy = Buffer.from(body);
  const at = byte % Math.max(1, copy.length);
  switch (how) {
    case 'flip':
      copy[at] = (copy[at] ?? 0) ^ (1 << (byte % 8));
      return copy;
    case 'cut':
      return copy.subarray(0, at);
    case 'grow':
      return Buffer.concat([copy, copy.subarray(at)]);
    case 'replace':
      return Buffer.from('{"kind":"nothing","segments":[{"start":-1}]}\n');
    default:
      return Buffer.alloc(0);
  }
}

/** Does harm to one object; answers which, and whether it differs from before. */
async function harm(host: MemoryHost, each: Harm): Promise<string | undefined> {
  const bucket = each.whose === 'source' ? 'input' : 'data';
  const places: ObjectRef[] = [];
  for await (const { key } of host.objects.list({ bucket, key: each.whose === 'source' ? '' : 'jobs/' }))
    places.push({ bucket, key });
  const place = places[each.at % Math.max(1, places.length)];
  if (place === undefined) return undefined;
  if (each.how === 'remove') {
    await host.objects.remove(bucket, [place.key]);
    return place.key;
  }
  const before = Buffer.from(await host.objects.readAll(place));
  // Plans and lists have no checksums beside S3's own: a digit that is another there is another plan.
  const isGuarded = each.whose === 'source' || place.key.includes('/data/');
  const after = harmed(before, each.how === 'flip' && !isGuarded ? { ...each, how: 'cut' } : each);
  if (after.equals(before)) return undefined;
  await host.objects.write(place, after);
  return place.key;
}

/** What a message may call an object: its key, or the task that wrote it. */
function isNamed(message: string, key: string): boolean {
  const [, stage, task] = /\/data\/([^/]+)\/(\d+)\//.exec(key) ?? [];
  const names = [
    key,
    key.split('/').at(-1) ?? key,
    ...(stage === undefined ? [] : [`${stage}/${String(task)}`]),
  ];
  if (key.endsWith('plan.json')) names.push('plan'); // A job has one.
  return names.some((name) => message.includes(name));
}

/** Objects that are damaged while jobs run: plans, manifests, outputs of attempts, and sources. */
export function objectFuzzer(): Fuzzer {
  const arbCase = fc.record({
    kind: fc.constantFrom<keyof typeof kinds>('wordcount', 'sort'),
    harms: fc.array(arbHarm, { minLength: 1, maxLength: 2 }),
    splitBytes: fc.constantFrom(20, 1_000),
    partitions: fc.integer({ min: 1, max: 3 }),
  });
  return {
    name: 'objects',
    what: 'a job whose objects are damaged gives the exact output or fails by their names',
    runs: 12,
    property: fc.asyncProperty(arbCase, async ({ kind, harms, splitBytes, partitions }) => {
      const host = new MemoryHost();
      const inputs: string[] = [];
      for (const [index, body] of bodies.entries())
        inputs.push(await host.put(`in/${String(index)}.txt`, body));
      let launches = 0;
      const touched: string[] = [];
      host.deliver = async (run) => {
        const launch = launches++;
        for (const each of harms) {
          if (each.launch !== launch) continue;
          const key = await harm(host, each);
          if (key !== undefined) touched.push(key);
        }
        return run();
      };
      const { job, output, keys } = await host.run(builtinJob(kind, { inputs, splitBytes, partitions }));
      hold(finalJobStates.includes(job.state), 'a job ends', job);
      const left = keys.filter((key) => !key.startsWith(`output/${job.jobId}/`));
      hold(left.length === 0, 'nothing is left', left);
      if (job.state === 'succeeded') {
        hold(kinds[kind](output), 'an output is exact', [touched, output.toString('latin1')]);
        return;
      }
      const message = job.error?.message ?? '';
      hold(
        touched.some((key) => isNamed(message, key)),
        'a failure names what is damaged',
        [job.error, touched],
      );
      hold(!keys.some((key) => key.startsWith('output/')), 'a job that failed leaves no output', keys);
    }),
  };
}
