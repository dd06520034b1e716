import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedSystem, makeLogs } from '../support/embedded-system.ts';

const code = `
export default {
  check() {},
  async run({ inputs, output, options }) {
    for (const input of inputs) {
      for await (const { bytes } of input.blocks()) await output.write(Buffer.from(bytes.toString().toUpperCase() + options.mark + '\\n'));
    }
  },
};
`;

let system: EmbeddedSystem;

beforeAll(async () => {
  system = await EmbeddedSystem.start({ slots: 2 });
});
afterAll(async () => {
  await system.stop();
});

const spec = (source: string, s3: string, sha256: string) => ({
  name: 'shout',
  stages: [{ name: 'shout', code: { s3, sha256 }, options: { mark: '!' }, inputs: [{ s3: [source] }] }],
});

describe('a stage of user code', () => {
  it('runs the bundle that its digest names, and its log can be read', async () => {
    const source = await system.put('text', Buffer.from('hello\nworld\n'));
    const bundle = await system.put('code.mjs', Buffer.from(code));
    const digest = createHash('sha256').update(code).digest('hex');
    const jobId = await system.submit(spec(source, bundle, digest));
    const job = await system.ended(jobId);
    expect(job.error).toBeUndefined();
    expect((await system.output(job)).toString()).toBe('HELLO\nWORLD\n!\n');
    const { lines } = await makeLogs(system.stack).read(job.jobId, { since: job.createdAt, limit: 1_000 });
    expect(lines.some(({ text }) => text.includes('"planned"'))).toBe(true);
  });

  it('refuses a bundle that is another by now', async () => {
    const source = await system.put('text', Buffer.from('hello\n'));
    const bundle = await system.put('other.mjs', Buffer.from('export default 1;'));
    const job = await system.ended(await system.submit(spec(source, bundle, '0'.repeat(64))));
    expect(job.state).toBe('failed');
    expect(job.error?.message).toMatch(/other\.mjs/);
  });
});
