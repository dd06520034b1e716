import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FaultSubject } from '../../src/local/http/fault-hook.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

const maps = 60;
const text = Buffer.from(
  Array.from({ length: 3_000 }, (_, line) => `${(line * 7919) % 3_000} line\n`).join(''),
);
/** Synthesis takes its time on a busy machine. */
const startMs = 400_000;
let launches = 0;
let system: EmbeddedSystem;
let input: string;

beforeAll(async () => {
  const onRequest = ({ service, invocationType }: FaultSubject): undefined => {
    if (service === 'lambda' && invocationType === 'Event') launches += 1;
  };
  system = await EmbeddedSystem.start({ slots: 2, onRequest });
  input = await system.put('lines', text);
}, startMs);

afterAll(() => system.stop());

describe('a stage of many short tasks on few slots', () => {
  it('takes fewer invocations than attempts, and each attempt is told by itself', async () => {
    const jobId = await system.submit({
      name: 'short-tasks',
      policy: 'none',
      stages: [
        {
          name: 'lines',
          operator: 'exec',
          options: { command: ['cat'] },
          inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / maps) }],
          partitions: 1,
        },
        { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'lines', pattern: 'all-to-all' }] },
      ],
    });
    const job = await system.ended(jobId);
    expect(job).toMatchObject({ state: 'succeeded', attempts: { lost: 0 } });
    expect(coreutils('sort', [], await system.output(job)).equals(coreutils('sort', [], text))).toBe(true);
    expect(job.attempts.launched).toBeGreaterThanOrEqual(maps);
    expect(launches).toBeLessThan(job.attempts.launched);
    const decided = await system.decisions(jobId);
    const riding = decided.filter((decision) => decision.kind === 'launch' && decision.behind !== undefined);
    // Each of them began in a place of another's, or in one of its own after all.
    expect(riding.length).toBeGreaterThanOrEqual(job.attempts.launched - launches);
    expect(riding.length).toBeGreaterThan(0);
  });
});
