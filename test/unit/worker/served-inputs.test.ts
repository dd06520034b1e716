import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ConflictError } from '../../../src/contracts/errors.ts';
import type { LineBlock, TaskInput } from '../../../src/worker/operator.ts';
import { Channel } from '../../../src/worker/user-code/channel.ts';
import type { Pull } from '../../../src/worker/user-code/protocol.ts';
import { ServedInputs } from '../../../src/worker/user-code/served-inputs.ts';

const changed = new ConflictError('s3://input/text: changed since the job was planned');
const block: LineBlock = { bytes: Buffer.from('first\n'), file: 's3://input/text', offset: 0 };

/** An input of one block, the first `failing` streams of which fail behind it, once `until` has come. */
function inputFailing(failing: number, until: Promise<unknown> = Promise.resolve()): TaskInput {
  let streams = 0;
  async function* blocks(): AsyncGenerator<LineBlock> {
    const isFailing = streams++ < failing;
    yield block;
    await until;
    if (isFailing) throw changed;
  }
  const none = (): never => expect.fail('nobody reads that');
  return { kind: 'source', format: 'text', blocks, records: none, rows: none };
}

const servedOf = (...inputs: readonly TaskInput[]): ServedInputs =>
  new ServedInputs(new Channel(new Socket(), 1_024), inputs);

const pull = (stream: number, input = 0): Pull => ({
  ...{ stream, input, kind: 'blocks' },
  ...{ recordsOut: 0, peakMemoryBytes: 0 },
});

describe('inputs of user code that says that it is done', () => {
  it('are refused where reading one failed', async () => {
    const served = servedOf(inputFailing(0), inputFailing(1));
    for (const input of [0, 0, 1, 1]) await served.serve(pull(input, input));
    expect(() => {
      served.throwIfUnread();
    }).toThrow(changed);
  });

  it('are not where it was read again, to its end', async () => {
    const served = servedOf(inputFailing(1));
    for (const stream of [0, 0, 1, 1]) await served.serve(pull(stream));
    served.throwIfUnread();
    expect(served.errorOf(0)).toBe(changed);
  });

  it('are where another reading of it ended before', async () => {
    const served = servedOf(inputFailing(1));
    for (const stream of [0, 1, 1, 0]) await served.serve(pull(stream));
    expect(() => {
      served.throwIfUnread();
    }).toThrow(changed);
  });

  it('are not where it was given up before', async () => {
    const closed = Promise.withResolvers();
    const served = servedOf(inputFailing(1, closed.promise));
    await served.serve(pull(0));
    const last = served.serve(pull(0));
    const closing = served.close(0);
    closed.resolve(undefined);
    await Promise.all([last, closing]);
    served.throwIfUnread();
  });
});
