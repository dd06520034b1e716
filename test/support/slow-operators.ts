import { durationMs } from '../../src/contracts/units.ts';
import { operators } from '../../src/operators/registry.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { OperatorRegistry, TaskContext, TaskInput } from '../../src/worker/operator.ts';

/** How long each attempt takes at least, and each block of its sources besides; absent: no time. */
export interface Slowness {
  readonly taskMs: number;
  readonly blockMs?: number;
}

/** The product's own operators, which first take their time. */
export function slowOperators(clock: Clock, { taskMs, blockMs }: Slowness): OperatorRegistry {
  const slow = Object.entries(operators).map(([name, operator]) => [
    name,
    {
      ...operator,
      run: async (context: TaskContext) => {
        await clock.sleep(durationMs(taskMs));
        return operator.run(blockMs === undefined ? context : slowlyRead(context, clock, blockMs));
      },
    },
  ]);
  return Object.fromEntries(slow) as OperatorRegistry;
}

/** The context of a task whose sources give each block after a while. */
function slowlyRead(context: TaskContext, clock: Clock, blockMs: number): TaskContext {
  async function* slow<T>(stream: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const item of stream) {
      await clock.sleep(durationMs(blockMs));
      yield item;
    }
  }
  const inputs = context.inputs.map((input): TaskInput =>
    input.kind === 'source' ? { ...input, blocks: () => slow(input.blocks()) } : input,
  );
  return { ...context, inputs };
}
