import { expect, it } from 'vitest';
import { epochMs } from '../../src/contracts/units.ts';
import { EventQueue } from '../../src/sim/event-queue.ts';
import { type Flow, FluidNetwork, type EndpointLinks } from '../../src/sim/fluid-network.ts';
import { VirtualClock } from '../../src/sim/virtual-clock.ts';

const link = (upBytesPerMs: number, downBytesPerMs: number): EndpointLinks => ({
  upBytesPerMs,
  downBytesPerMs,
});

/** A network on a virtual clock, and the times at which its flows end, by name. */
function bench(zones: readonly EndpointLinks[], capBytesPerMs = Infinity) {
  const queue = new EventQueue();
  const clock = new VirtualClock(queue);
  const network = new FluidNetwork(queue, () => clock.now(), zones, capBytesPerMs);
  const ends: Record<string, number> = {};
  const start = (name: string, [from, to]: readonly [number, number], sizeBytes: number): Flow =>
    network.start(from, to, sizeBytes, () => {
      ends[name] = clock.now();
    });
  const at = (ms: number, run: () => void): void => {
    queue.schedule(epochMs(ms), { kind: 'test', subject: '', run });
  };
  const run = async (): Promise<Record<string, number>> => {
    for (let event = queue.pop(); event !== undefined; event = queue.pop()) {
      clock.advanceTo(event.at);
      await event.run();
    }
    return ends;
  };
  return { network, start, at, run };
}

it('carries one flow at the rate of its narrower link', async () => {
  const { start, run } = bench([link(10, 100), link(100, 4)]);
  start('only', [0, 1], 1_000);
  expect(await run()).toEqual({ only: 250 });
});

it('speeds the others up when one has ended', async () => {
  const { start, run } = bench([link(10, 100), link(100, 100)]);
  start('short', [0, 1], 500);
  start('long', [0, 1], 1_000);
  // Both at 5 until 100 ms; then the long one has 500 bytes left at 10.
  expect(await run()).toEqual({ short: 100, long: 150 });
});

it('slows a flow down while a later one shares its link, and forgets a flow that was stopped', async () => {
  const { start, at, run, network } = bench([link(10, 10), link(10, 10), link(10, 10)]);
  start('first', [0, 1], 1_000);
  at(50, () => {
    const second = start('second', [2, 1], 10_000);
    at(70, () => {
      network.stop(second);
    });
  });
  // 500 bytes by 50 ms, 100 more by 70 ms at half the rate, then 400 at 10.
  expect(await run()).toEqual({ first: 110 });
});

it('limits flows within a zone by the cap alone', async () => {
  const { start, run } = bench([link(1, 1)], 20);
  start('near', [0, 0], 1_000);
  start('nearer', [0, 0], 400);
  expect(await run()).toEqual({ near: 50, nearer: 20 });
});

it('ends flows at once where nothing limits them', async () => {
  const { start, run } = bench([link(Infinity, Infinity), link(Infinity, Infinity)]);
  start('free', [0, 1], 1e12);
  expect(await run()).toEqual({ free: 0 });
});

it('ends flows of one moment in the order in which their ends were first joined', async () => {
  const { start, at, run } = bench([link(10, 10), link(10, 10), link(10, 10), link(10, 10)]);
  start('before', [0, 1], 100);
  at(50, () => {
    start('second', [2, 3], 1_000);
    start('first', [0, 1], 1_000);
  });
  expect(Object.keys(await run())).toEqual(['before', 'first', 'second']);
});

it('shares a disk by how many streams use it, and passes it twice what is read and written there', async () => {
  // 100 bytes a millisecond for one stream, 60 in all for two, 40 for three and more.
  const disk = { ...link(Infinity, Infinity), diskBytesPerMs: [100, 60, 40] };
  const alone = bench([disk, link(Infinity, Infinity)]);
  alone.start('away', [0, 1], 1_000);
  expect(await alone.run()).toEqual({ away: 10 });

  const copied = bench([disk]);
  copied.start('here', [0, 0], 1_000);
  expect(await copied.run()).toEqual({ here: 34 }); // 1,000 at 30: two streams of one disk.

  const both = bench([disk, disk, link(Infinity, Infinity)]);
  both.start('read', [0, 1], 1_000);
  both.at(5, () => {
    both.start('again', [0, 2], 1_000);
  });
  // 500 bytes by 5 ms, the rest at 30 by 21.7; the second has 500 of its own left then, at 100.
  expect(await both.run()).toEqual({ read: 22, again: 27 });
});

it('goes on at another rate where a link begins to carry less, and more again', async () => {
  const { start, at, run, network } = bench([link(10, 10), link(10, 10)]);
  start('only', [0, 1], 1_000);
  at(40, () => {
    network.relink(1, link(10, 2));
  });
  at(90, () => {
    network.relink(1, link(10, 10));
  });
  // 400 bytes by 40 ms, 100 more by 90 ms, then 500 at 10.
  expect(await run()).toEqual({ only: 140 });
});
