import { expect, it } from 'vitest';
import { createRng } from '../../src/lib/rng.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

/** Outputs of several parts for each of two tasks. */
const text = Buffer.from(
  Array.from({ length: 2_000_000 }, (_, line) => `${String((line * 7919) % 2_000_000)} line\n`).join(''),
);

it('has late parts sent a second time, gives exactly the right lines, and no task has failed or was lost', async () => {
  // Far longer than a request that is late waits for the second one.
  const rng = createRng('late parts');
  let late = 0;
  const system = await EmbeddedSystem.start({
    // As many for copies as for the tasks: where a second request is late as well a copy is right, and the rest holds.
    slots: 4,
    onRequest: ({ service, operation }) => {
      if (service !== 's3' || operation !== 'UploadPart' || rng.next() < 0.5) return undefined;
      late += 1;
      return { delayMs: 12_000 };
    },
  });
  try {
    const input = await system.put('lines', text);
    const job = await system.ended(
      await system.submit({
        name: 'lines',
        stages: [
          {
            name: 'cut',
            operator: 'grep',
            options: { pattern: 'line' },
            inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / 2) }],
          },
        ],
      }),
      300_000,
    );
    expect(job.error).toBeUndefined();
    expect((await system.output(job)).equals(coreutils('grep', ['line'], text))).toBe(true);
    expect(late).toBeGreaterThan(0);
    expect(job.requests?.hedgedParts).toBeGreaterThan(0);
    expect(job.attempts).toMatchObject({ lost: 0 });
    expect(job.stages[0]).toMatchObject({ failed: 0 });
  } finally {
    await system.stop();
  }
}, 400_000);
