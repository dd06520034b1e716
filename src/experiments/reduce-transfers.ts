import { epochMs } from '../contracts/units.ts';
import type { LocationLinks } from '../core/policy/mantri/placement.ts';
import { EventQueue } from '../sim/event-queue.ts';
import { FluidNetwork } from '../sim/fluid-network.ts';
import { VirtualClock } from '../sim/virtual-clock.ts';
import type { ShufflePhase } from './shuffle-phases.ts';

/** How finely time is told, of what the phase is expected to take. */
const ticks = 100;
/** How many ticks links stay as they are, at least. */
const ticksPerSpell = 4;

/** What a fluid made of the transfers of a phase. */
export interface Transfers {
  /** Until the last task has all its input. */
  readonly endMs: number;
  /** Bytes per millisecond of each task, up to its own end. */
  readonly throughputs: readonly number[];
}

/** The cluster around a phase. */
export interface Surroundings {
  /** What its links leave to the phase, as a mean over a time since its start. */
  readonly leftTo: (fromMs: number, toMs: number) => LocationLinks;
  /** What a machine takes in; a task shares it evenly among the racks that it reads from. */
  readonly machineBytesPerMs: number;
  readonly expectedMs: number;
}

/** Lets all tasks of a phase read all their input at once, a stream from each rack, from where they are placed. */
export async function runTransfers(
  { inputs, sources }: Pick<ShufflePhase, 'inputs' | 'sources'>,
  locations: readonly number[],
  { leftTo, machineBytesPerMs, expectedMs }: Surroundings,
): Promise<Transfers> {
  const tickMs = expectedMs / ticks;
  const spellTicks = Math.max(ticksPerSpell, Math.ceil(1_000 / tickMs));
  const queue = new EventQueue();
  const clock = new VirtualClock(queue);
  const linksAt = (tick: number) => {
    const { up, down } = leftTo(tick * tickMs, (tick + spellTicks) * tickMs);
    return up.map((link, k) => ({
      upBytesPerMs: link * tickMs,
      downBytesPerMs: (down[k] ?? 0) * tickMs,
    }));
  };
  const cap = (machineBytesPerMs * tickMs) / sources.length;
  const network = new FluidNetwork(queue, () => clock.now(), linksAt(0), cap);
  const used = [...new Set([...sources, ...locations])];
  const endTicks = inputs.map(() => 0);
  let flows = 0;
  inputs.forEach((row, task) => {
    for (const from of sources) {
      flows += 1;
      network.start(from, locations[task] ?? 0, row[from] ?? 0, () => {
        endTicks[task] = clock.now();
        flows -= 1;
      });
    }
  });
  const change = (): void => {
    if (flows === 0) return;
    const links = linksAt(clock.now());
    for (const rack of used) network.relink(rack, links[rack] ?? { upBytesPerMs: 0, downBytesPerMs: 0 });
    queue.schedule(epochMs(clock.now() + spellTicks), { kind: 'links', subject: '', run: change });
  };
  queue.schedule(epochMs(spellTicks), { kind: 'links', subject: '', run: change });
  for (let event = queue.pop(); event !== undefined && flows > 0; event = queue.pop()) {
    clock.advanceTo(event.at);
    await event.run();
  }
  const bytes = inputs.map((row) => row.reduce((sum, each) => sum + each, 0));
  return {
    endMs: endTicks.reduce((a, b) => Math.max(a, b), 0) * tickMs,
    throughputs: bytes.map((each, task) => each / ((endTicks[task] ?? 0) * tickMs)),
  };
}
