import { expect, it } from 'vitest';
import { createRng } from '../../src/lib/rng.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

const text = Buffer.from(
  Array.from({ length: 4_000 }, (_, line) => `${(line * 7919) % 4_000} line\n`).join(''),
);

it('has late reads asked for a second time, gives exactly the right lines, and no task has failed or was lost', async () => {
  // Far longer than a request that is late waits for the second one.
  const rng = createRng('late reads');
  let late = 0;
  const system = await EmbeddedSystem.start({
    // As many for copies as for the tasks: where a second request is late as well a copy is right, and the rest holds.
    slots: 10,
    onRequest: ({ service, operation }) => {
      if (service !== 's3' || operation !== 'GetObject' || rng.next() < 0.5) return undefined;
      late += 1;
      return { delayMs: 6_000 };
    },
  });
  try {
    const input = await system.put('lines', text);
    const job = await system.ended(
      await system.submit({
        name: 'sorted',
        stages: [
          {
            name: 'cut',
            operator: 'grep',
            options: { pattern: '7' },
            inputs: [{ s3: [input], splitBytes: 8_192 }],
          },
        ],
      }),
      300_000,
    );
    expect(job.error).toBeUndefined();
    expect((await system.output(job)).equals(coreutils('grep', ['7'], text))).toBe(true);
    expect(late).toBeGreaterThan(0);
    expect(job.requests?.hedgedReads).toBeGreaterThan(0);
    expect(job.attempts).toMatchObject({ lost: 0 });
    expect(job.stages[0]).toMatchObject({ failed: 0 });
  } finally {
    await system.stop();
  }
}, 400_000);
