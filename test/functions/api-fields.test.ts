import { describe, expect, it } from 'vitest';
import { answer } from '../../functions/api/routes.ts';
import { sessionPolicy } from '../../src/adapters/aws/session-policy.ts';
import { operators } from '../../src/operators/registry.ts';
import type { JobGrant } from '../../src/ports/job-access.ts';
import { ScriptedSystem } from '../support/scripted-job.ts';

const source = { s3: ['s3://data/in/'] };
const map = { name: 'map', operator: 'tokenize', inputs: [source], partitions: 2 };
const sum = { name: 'sum', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] };
const spec = { name: 'words', stages: [map, sum] };
const withLast = (more: object) => ({ spec: { ...spec, stages: [map, { ...sum, ...more }] } });
const withMap = (more: object) => ({ spec: { ...spec, stages: [{ ...map, ...more }, sum] } });

type Path = '/jobs' | '/plans';

async function post(
  resource: Path,
  body: unknown,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const system = Object.assign(new ScriptedSystem(), {
    checkOperator: (name: keyof typeof operators, options: object) => {
      operators[name].check(options as Readonly<Record<string, unknown>>);
    },
    checkGrant: (grant: JobGrant) => {
      sessionPolicy(grant, { dataBucket: 'data', partition: 'aws' });
    },
  });
  const request = { httpMethod: 'POST', resource, pathParameters: null, queryStringParameters: null };
  const answered = await answer(system, { ...request, body: JSON.stringify(body), isBase64Encoded: false });
  return { status: answered.statusCode, body: JSON.parse(answered.body) as Record<string, unknown> };
}

/** What an object holds at a path without its last step. */
function holderAt(body: unknown, path: string): unknown {
  const steps = path.split(/[.[\]]+/).filter((step) => step !== '');
  return steps
    .slice(0, -1)
    .reduce<unknown>((found, step) => (found as Record<string, unknown> | undefined)?.[step], body);
}

const graphs: readonly (readonly [field: string, body: object])[] = [
  ['spec.stages[1].name', withLast({ name: 'map' })],
  ['spec.stages[1].inputs[0].stage', withLast({ inputs: [{ stage: 'nope', pattern: 'all-to-all' }] })],
  ['spec.stages[1].partitions', withLast({ partitions: 3 })],
  ['spec.stages[1].tasks', withLast({ tasks: 3 })],
  ['spec.stages[0]', { spec: { ...spec, stages: [map, { ...sum, inputs: [source], operator: 'grep' }] } }],
  ['spec.onBudget', { spec: { ...spec, onBudget: 'stop' } }],
  // Those that the schema finds.
  ['spec.stages[0].partitions', withMap({ partitions: 0 })],
  ['spec.deadline', { spec: { ...spec, deadline: 'soon' } }],
];

const all = (stage: string) => ({ stage, pattern: 'all-to-all' });
const uneven = [
  { ...map, name: 'two', partitions: 2 },
  { ...map, name: 'three', partitions: 3 },
  { ...sum, name: 'left', inputs: [all('two')] },
  { ...sum, name: 'right', inputs: [all('three')] },
  {
    name: 'both',
    operator: 'grep',
    options: { pattern: '.' },
    inputs: ['left', 'right'].map((stage) => ({ stage, pattern: 'one-to-one' })),
  },
];

const rules: typeof graphs = [
  ['spec.storage', { spec: { ...spec, storage: 'zonal' } }],
  [
    'spec.stages[0].credentials',
    withMap({ operator: 'exec', options: { command: ['cat'] }, credentials: true }),
  ],
  ['spec.stages[0].options.words', withMap({ options: { words: 1 } })],
  [
    'spec.stages[1].inputs[0].pattern',
    {
      spec: {
        ...spec,
        stages: [
          { ...map, partitions: undefined },
          { ...sum, inputs: [{ stage: 'map', pattern: 'many-to-one' }] },
        ],
      },
    },
  ],
  ['spec.output', { spec: { ...spec, output: 's3://data/jobs/' } }],
  ['spec.stages[0].inputs[0].s3[0]', { spec: { ...spec, output: 's3://data/in/' } }],
  // Two stages of as many tasks as partitions that they read, each read one-to-one: 2 and 3.
  ['spec.stages[4].inputs', { spec: { ...spec, stages: uneven } }],
  [
    'spec',
    withMap({ inputs: [{ s3: Array.from({ length: 900 }, (_, i) => `s3://data/${i}/${'x'.repeat(300)}`) }] }),
  ],
];

it.each([
  ...[...graphs, ...rules].flatMap(([field, body]) => [
    ['/jobs', field, body] as const,
    ['/plans', field, body] as const,
  ]),
  ['/jobs', 'clientToken', { spec, clientToken: '?' }] as const,
  ['/plans', 'stages.nope', { spec, stages: { nope: { tasks: 1 } } }] as const,
])('POST %s names what is wrong from the root of the body: %s', async (resource, field, body) => {
  const answered = await post(resource, body);
  expect(answered).toMatchObject({ status: 400, body: { error: 'InvalidInput', field } });
  expect(holderAt(body, field)).toBeTypeOf('object');
});

describe.each(['/jobs', '/plans'] as const)(
  'POST %s of a job that its session has no room for',
  (resource) => {
    const buckets = Array.from({ length: 60 }, (_, index) => `s3://${'b'.repeat(50)}-${index}/in/`);
    const reading = (count: number, more = {}) => ({
      spec: { ...withMap({ inputs: [{ s3: buckets.slice(0, count) }] }).spec, ...more },
    });

    it('names the first bucket that is one too many, without which it is taken', async () => {
      const { status, body } = await post(resource, reading(60));
      expect([status, body['error']]).toEqual([400, 'InvalidInput']);
      const place = Number(/^spec\.stages\[0\]\.inputs\[0\]\.s3\[(\d+)\]$/.exec(String(body['field']))?.[1]);
      expect(body['message']).toContain(`s3[${place}] must be in one of the ${place} buckets that are named`);
      expect((await post(resource, reading(place + 1))).status).toBe(400);
      expect((await post(resource, reading(place))).status).toBeLessThan(300);
    });

    it('names the output that is too long even alone', async () => {
      const output = `s3://results/${'*'.repeat(600)}/`;
      expect(await post(resource, reading(1, { output }))).toMatchObject({
        status: 400,
        body: {
          field: 'spec.output',
          message: expect.stringMatching(/^output must be shorter: .* of at most 2048$/) as string,
        },
      });
    });
  },
);
