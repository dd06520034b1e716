import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it, type TestContext } from 'vitest';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import { MemoryHost } from '../../support/memory-host.ts';

/** Digits do not pack well: the first file is beyond what is looked at for its columns at first. */
const digest = (at: number): string => createHash('sha256').update(String(at)).digest('hex');
const header = 'id,customer,amount\n';
const orders = header + Array.from({ length: 6_000 }, (_, at) => `${at},${at % 50},${digest(at)}\n`).join('');
const more = `${header}6000,7,x\n`;
const customers = `customer,name\n${Array.from({ length: 50 }, (_, at) => `${at},n${at}\n`).join('')}`;

function bzip2(ctx: TestContext, text: string): Buffer {
  try {
    return execFileSync('bzip2', ['-c'], { input: text, maxBuffer: 2 ** 28 });
  } catch {
    ctx.skip('there is no bzip2 here');
  }
}

const packers: Readonly<Record<string, (ctx: TestContext, text: string) => Buffer>> = {
  gz: (_, text) => gzipSync(text),
  zst: (_, text) => zstdCompressSync(text),
  bz2: bzip2,
};

/** Lines of what a job gives from a packed file and two more, one task each, of which the last holds no row. */
async function linesOf(
  first: { readonly ending: string; readonly body: Buffer },
  specOf: (inputs: readonly string[], right: readonly string[]) => JobSpecInput,
): Promise<string[]> {
  const host = new MemoryHost();
  const inputs = [
    await host.put(`orders/1.csv${first.ending}`, first.body),
    await host.put('orders/2.csv', Buffer.from(more)),
    await host.put('orders/3.csv', Buffer.from(header)),
  ];
  const right = [await host.put('customers.csv', Buffer.from(customers))];
  const { job, output } = await host.run(specOf(inputs, right));
  expect(job.error).toBeUndefined();
  expect(job.stages.some(({ tasks }) => tasks === 3)).toBe(true);
  return output.toString().split('\n').toSorted();
}

const joined =
  (broadcast: boolean) =>
  (inputs: readonly string[], right: readonly string[]): JobSpecInput =>
    builtinJob('join', {
      ...{
        inputs,
        right,
        leftKey: 'customer',
        rightKey: 'customer',
        format: 'csv',
        multiline: true,
        broadcast,
      },
      ...{ splitBytes: 20, ...(broadcast ? {} : { partitions: 2 }) },
    });

const queried = (inputs: readonly string[]): JobSpecInput => ({
  name: 'amounts',
  stages: [
    {
      name: 'amounts',
      operator: 'sql',
      options: { query: 'SELECT id, amount FROM input', output: 'csv' },
      inputs: [{ s3: [...inputs], format: 'csv', multiline: true, splitBytes: 20 }],
    },
  ],
});

describe.each([
  ['a join by broadcast', joined(true)],
  ['a join by shuffle', joined(false)],
  ['sql', queried],
])('%s over CSV whose first file is packed', (_, specOf) => {
  it.for(Object.entries(packers))(
    'gives what it gives of the plain file: .%s',
    { timeout: 20_000 },
    async ([ending, pack], ctx) => {
      const plain = await linesOf({ ending: '', body: Buffer.from(orders) }, specOf);
      expect(plain.filter((line) => line.startsWith('6000,'))).toHaveLength(1);
      const body = pack(ctx, orders);
      expect(body.length).toBeGreaterThan(64 * 1024);
      expect(await linesOf({ ending: `.${ending}`, body }, specOf)).toEqual(plain);
    },
  );
});
