import fc from 'fast-check';
import { answer } from '../../functions/api/routes.ts';
import { parseJobId } from '../../src/contracts/ids.ts';
import { finalJobStates, type JobRecord } from '../../src/contracts/records.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { countWords, coreutils } from '../support/coreutils.ts';
import { startTables, type TableServer } from '../contract/ports/servers.ts';
import { type Fuzzer, hold } from './fuzzer.ts';
import { RecordWorld, type StoredItem } from './record-world.ts';
import { driveJob } from './virtual-job.ts';

/** How an item is spoilt, once so many writes have been made. */
interface Spoiling {
  readonly after: number;
  /** Number of the item and of its attribute, modulo how many there are; keys stay as they are. */
  readonly item: number;
  readonly attribute: number;
  readonly value: unknown;
}

/** `undefined` takes the attribute away. */
const arbValue = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    '',
    'NaN',
    'Infinity',
    '{"a":',
    '[]',
    '{}',
    'null',
    '[null]',
    true,
  ),
  fc.constantFrom<unknown>(0, -1, 0.5, 1e21, -1e21, 9007199254740991, 1e-100),
  fc.constantFrom<unknown>([], {}, [1], { toString: 1 }, { a: { b: [] } }),
  fc.uint8Array({ maxLength: 40 }),
  fc.string({ maxLength: 30 }),
);

const arbSpoiling: fc.Arbitrary<Spoiling> = fc.record({
  after: fc.nat(60),
  item: fc.nat(1_000),
  attribute: fc.nat(1_000),
  value: arbValue,
});

/** What the table needs to find an item, and what tells how old it is. */
const indexed = new Set(['pk', 'sk', 'expiresAt', 'listing', 'createdAt', 'changedAt']);
/** What a job is: who spoils these makes another job of it. */
const identity = new Set([
  'jobId',
  'name',
  'spec',
  'specDigest',
  'output',
  'state',
  'cancelRequestedAt',
  'planNonce',
  'shards',
]);
/** A number for a number and a text for a text: nobody can tell, but where the text holds JSON. */
const isBelievable = (before: unknown, after: unknown): boolean =>
  (typeof before === 'number' && typeof after === 'number') ||
  (typeof before === 'string' && typeof after === 'string' && !/^[[{]/.test(before));

/** Spoils an item; answers its key and the attribute. */
async function spoil(
  world: RecordWorld,
  { item: place, attribute, value }: Spoiling,
): Promise<string | undefined> {
  const items = await world.items();
  const item = items[place % Math.max(1, items.length)];
  if (item === undefined) return undefined;
  const isJob = item['sk'] === 'META';
  const names = Object.keys(item)
    .filter((name) => !indexed.has(name) && !(isJob && identity.has(name)))
    .sort();
  const name = names[attribute % Math.max(1, names.length)];
  if (name === undefined) return undefined;
  if (isBelievable(item[name], value)) return undefined;
  const spoilt: StoredItem = { ...item };
  if (value === undefined) Reflect.deleteProperty(spoilt, name);
  else spoilt[name] = value;
  await world.put(spoilt);
  return `${String(item['pk'])} ${String(item['sk'])} ${name}`;
}

const body = Buffer.from('the cat sat on the mat\nand the dog\nsat on the cat\n'.repeat(3));

async function ask(
  world: RecordWorld,
  httpMethod: string,
  resource: string,
  more: { id?: string; json?: unknown } = {},
) {
  const { statusCode, body: text } = await answer(world.deps, {
    httpMethod,
    resource,
    pathParameters: more.id === undefined ? null : { id: more.id },
    queryStringParameters: null,
    body: more.json === undefined ? null : JSON.stringify(more.json),
    isBase64Encoded: false,
  });
  const told = JSON.parse(text) as Record<string, unknown>;
  hold(statusCode < 500, `${httpMethod} ${resource} is answered`, [statusCode, told, world.logged.slice(-5)]);
  return told;
}

async function checkEnd(world: RecordWorld, job: JobRecord, spoilt: readonly string[]): Promise<void> {
  hold(finalJobStates.includes(job.state), 'a job ends', [job.state, spoilt, world.logged.slice(-10)]);
  const keys: string[] = [];
  for await (const { key } of world.objects.list({ bucket: 'data', key: '' })) keys.push(key);
  for await (const { key } of world.objects.listUploads({ bucket: 'data', key: '' }))
    keys.push(`upload of ${key}`);
  const left = keys.filter((key) => !/^(in|output)\//.test(key));
  hold(left.length === 0, 'nothing is left', [left, spoilt, job.error]);
  if (job.state !== 'succeeded') {
    hold((job.error?.message ?? '') !== '', 'a job that failed says why', [job.error, spoilt]);
    hold(!keys.some((key) => key.startsWith('output/')), 'a job that failed leaves no output', [
      keys,
      spoilt,
    ]);
    return;
  }
  const parts = keys.filter((key) => key.startsWith('output/') && !key.endsWith('_SUCCESS'));
  const texts: Uint8Array[] = [];
  for (const key of parts) texts.push(await world.objects.readAll({ bucket: 'data', key }));
  const got = coreutils('sort', [], Buffer.concat(texts)).toString();
  hold(got === countWords([body]), 'an output is exact', [spoilt, got]);
}

/** Records of every kind that are spoilt while a job runs. */
export function recordFuzzer(): Fuzzer {
  let starting: Promise<TableServer> | undefined;
  const server = (): Promise<TableServer> =>
    (starting ??= startTables(
      process.platform === 'linux' && process.arch === 'x64' ? 'dynoxide' : 'dynalite',
    ));
  const arbCase = fc.record({
    spoilings: fc.array(arbSpoiling, { minLength: 1, maxLength: 3 }),
    cancelAfter: fc.option(fc.nat(60), { freq: 4 }),
  });
  return {
    name: 'records',
    what: 'a job whose records are spoilt ends, leaves nothing, and the API answers',
    runs: 25,
    property: fc.asyncProperty(arbCase, async ({ spoilings, cancelAfter }) => {
      const world = await RecordWorld.make(await (await server()).fresh());
      await world.objects.write({ bucket: 'data', key: 'in/text' }, body);
      const stages = builtinJob('wordcount', {
        inputs: ['s3://data/in/text'],
        splitBytes: 60,
        partitions: 2,
      }).stages;
      const { jobId: id } = await world.whileTimePasses(
        ask(world, 'POST', '/jobs', { json: { spec: { name: 'words', stages } } }),
        60_000,
      );
      const jobId = parseJobId(String(id));
      hold(jobId !== undefined, 'a job is taken', id);
      const spoilt: string[] = [];
      world.onWrite = async (writes) => {
        for (const each of spoilings) {
          if (each.after !== writes) continue;
          const what = await spoil(world, each);
          if (what !== undefined) spoilt.push(what);
        }
        if (cancelAfter === writes) await ask(world, 'POST', '/jobs/{id}/cancel', { id: jobId });
      };
      await world.whileTimePasses(driveJob(world.deps, jobId), 2 * 3_600_000);
      world.onWrite = () => Promise.resolve();
      await world.close();
      const asked = Promise.all([
        ask(world, 'GET', '/jobs'),
        ask(world, 'GET', '/jobs/{id}/attempts', { id: jobId }),
      ]);
      await world.whileTimePasses(asked, 60_000);
      const job = await ask(world, 'GET', '/jobs/{id}', { id: jobId });
      await checkEnd(world, job as unknown as JobRecord, spoilt);
    }),
    async close() {
      await (await starting)?.close();
    },
  };
}
