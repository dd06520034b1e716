import { expect, it } from 'vitest';
import { ExchangedLoads, exchangedFindings } from '../../src/experiments/exchanged-loads.ts';
import { runExperiment } from '../../src/experiments/experiment.ts';
import { replayPhases } from '../../src/experiments/link-replay.ts';
import { SharedLinks } from '../../src/experiments/link-sharing.ts';
import { mantriPlacement } from '../../src/experiments/mantri-placement.ts';
import { runTransfers } from '../../src/experiments/reduce-transfers.ts';
import { shufflePhases } from '../../src/experiments/shuffle-phases.ts';
import { createRng } from '../../src/lib/rng.ts';
import type { TraceJob } from '../../src/traces/trace-job.ts';

const MIB = 1024 * 1024;

/** A shuffle as the trace has it: from racks, to racks with what each receives in MiB. */
const shuffle = (
  submittedAtMs: number,
  from: readonly number[],
  to: Readonly<Record<number, number>>,
): TraceJob => ({
  id: `${submittedAtMs}`,
  submittedAtMs,
  stages: [
    { name: 'map', upstream: [], tasks: from.map((rack) => ({ zone: `R${rack}` })) },
    {
      name: 'reduce',
      upstream: [0],
      tasks: Object.entries(to).map(([rack, mib]) => ({ zone: `R${rack}`, inputBytes: mib * MIB })),
    },
  ],
});

it('divides what a rack received into tasks, as many as a rack holds at most', () => {
  const [small, large, ...more] = shufflePhases(
    [
      shuffle(0, [0, 2], { 1: 300, 2: 10 }),
      shuffle(5, [0], { 1: 256 * 40, 2: 256 * 4 }),
      shuffle(9, [0], { 1: 0 }),
    ],
    3,
    20,
  );
  expect(more).toEqual([]);
  expect(small).toEqual({
    inputs: [
      [75 * MIB, 0, 75 * MIB],
      [75 * MIB, 0, 75 * MIB],
      [5 * MIB, 0, 5 * MIB],
    ],
    recorded: [1, 1, 2],
    bytes: 310 * MIB,
    submittedAtMs: 0,
    sources: [0, 2],
  });
  expect(large?.recorded).toEqual([...Array.from({ length: 20 }, () => 1), 2, 2]);
});

it('shares links evenly among the phases that use them, the own one left out, the hour repeated', () => {
  const phases = shufflePhases(
    [shuffle(10_000, [0], { 1: 100 }), shuffle(10_000, [0], { 2: 100 }), shuffle(3_599_000, [0], { 1: 200 })],
    3,
    20,
  );
  // 100 MiB a second. The first two share the uplink of rack 0 from second 10 to 12; the third has it for two seconds
  // around the end of the hour.
  const bytesPerMs = (100 * MIB) / 1_000;
  const replay = replayPhases(phases, { racks: 3, bytesPerMs }, (index) => phases[index]?.recorded ?? []);
  const links = new SharedLinks(replay, bytesPerMs);
  const upAt = (phase: number, second: number): number =>
    (links.leftTo(phase, second, second + 1).up[0] ?? 0) / bytesPerMs;
  expect([9, 10, 11, 12, 3_599, 3_600].map((second) => upAt(0, second).toFixed(6))).toEqual(
    [1, 0.5, 0.5, 1, 0.5, 0.5].map((share) => share.toFixed(6)),
  );
  expect(upAt(2, 10)).toBeCloseTo(1 / 3, 9);
  expect(upAt(2, 3_600)).toBeCloseTo(1, 9);
  expect(links.leftTo(0, 8, 12).up[0]).toBeCloseTo(((100 * MIB) / 1_000) * 0.75, 6);
  // Each of the first two has a downlink to itself, but is held up by nobody else there.
  expect(links.leftTo(2, 10, 11).down[1]).toBeCloseTo(((100 * MIB) / 1_000) * 0.5, 6);
});

it('ends a phase when its slowest task has all its input', async () => {
  const links = { up: [10, 10, 10], down: [10, 5, 10] };
  const inputs = [
    [1_000_000, 0, 0],
    [1_000_000, 0, 0],
  ];
  const around = { leftTo: () => links, machineBytesPerMs: 1_000, expectedMs: 200_000 };
  const { endMs, throughputs } = await runTransfers({ inputs, sources: [0] }, [1, 2], around);
  // Both at 5 of the uplink's 10.
  expect(endMs).toBeCloseTo(200_000, -4);
  expect(throughputs.map((rate) => Math.round(rate))).toEqual([5, 5]);
  const local = await runTransfers({ inputs, sources: [0] }, [0, 0], { ...around, expectedMs: 1_000 });
  expect(local.endMs).toBeCloseTo(1_000, -2);
});

it('follows links that change while it runs', async () => {
  const leftTo = (fromMs: number) => ({ up: [10, 10], down: [10, fromMs < 50_000 ? 10 : 5] });
  const around = { leftTo, machineBytesPerMs: 1_000, expectedMs: 100_000 };
  const { endMs } = await runTransfers({ inputs: [[1_000_000, 0]], sources: [0] }, [1], around);
  // Half by 50 s, but the links are read every four ticks of a second; the other half at 5.
  expect(endMs).toBeGreaterThan(140_000);
  expect(endMs).toBeLessThan(153_000);
});

it('places three crowded reducers apart, which ends their phase sooner', async () => {
  // Racks 0 to 2 hold the input; all reducers were put into rack 3.
  const jobs = [shuffle(0, [0, 1, 2], { 3: 3 * 256 }), shuffle(600_000, [5, 6], { 7: 100, 8: 100 })];
  const { result } = await runExperiment(mantriPlacement, {
    seed: 1,
    count: 2,
    traces: new Map([['coflow', jobs]]),
  });
  const of = (scheme: string) =>
    result.rows.find((row) => row['phases'] === 'all' && row['scheme'] === scheme) ?? {};
  expect(Number(of('mantri')['seconds'])).toBeLessThan(Number(of('first free slot')['seconds']));
  expect(of('mantri')).toEqual({ ...of('ideal reduce'), scheme: 'mantri' });
  expect(of('ours')).toEqual({ ...of('ideal reduce'), scheme: 'ours' });
  // Nothing large, nothing beside exchanged loads.
  expect(result.rows.filter((row) => row['loads'] !== undefined)).toEqual([]);
});

/** Two reducers of 60 MB, all input in rack 0, which has room for one: the other one reads 60 MB over its own downlink. */
function besideLoads(downlinks: readonly [(s: number) => number, (s: number) => number]) {
  const free = () => new Float64Array(3_600).fill(1);
  const shares = [free(), free(), free(), free(), ...downlinks.map((at) => free().map((_, s) => at(s)))];
  const loads = new ExchangedLoads({ bytesPerMs: 1_000, room: 1, shares }, createRng('exchanged'));
  const inputs = [0, 1].map(() => [60_000_000, 0, 0]);
  const phase = { inputs, sources: [0], recorded: [1, 2], bytes: 120_000_000, submittedAtMs: 0 };
  loads.add({ phase, shares, startS: 0, byEqual: [0, 1] });
  return loads.found();
}

it('takes as long beside exchanged loads as ever where nothing changes', () => {
  const found = besideLoads([() => 1, () => 1]);
  expect(found.map(({ sums, persistenceS }) => ({ ...sums, persistenceS }))).toEqual(
    found.map(() => ({
      equal: 60_000,
      start: 60_000,
      ours: 60_000,
      'ideal reduce': 60_000,
      persistenceS: 0,
    })),
  );
  const { rows, checks } = exchangedFindings([found]);
  expect(rows).toHaveLength(6 * 4);
  expect(rows[0]).toMatchObject({
    loads: 'as recorded',
    scheme: 'equal',
    seconds: 60,
    aboveIdealPct: '0.0 ± 0.0',
  });
  // Nothing falls with the length of slices, and Start is not behind Equal.
  expect(checks.map(({ kind, ok }) => [kind, ok])).toEqual([
    ['side', false],
    ['side', true],
    ['side', false],
    ['side', true],
  ]);
});

it('goes by what is usual where a moment says little', () => {
  // Rack 2 is free for two seconds of 600, and else it leaves a tenth; rack 1 leaves a half at all times.
  const found = besideLoads([() => 0.5, (s) => (s % 600 < 2 ? 1 : 0.1)]);
  const recorded = found.find(({ loads }) => loads === 'as recorded');
  // By Start: 2 MB in two seconds, and 58 at 0.1 a second. By usual links, as loads last no time beside the phase: 60 at 0.5.
  expect(recorded?.sums.start).toBeCloseTo(582_000, 3);
  expect(recorded?.sums.ours).toBeCloseTo(120_000, 3);
  expect(recorded?.sums['ideal reduce']).toBeCloseTo(120_000, 3);
});

it('lets phases slow each other down, and places each by what its links leave when it comes', () => {
  const phases = shufflePhases(
    [shuffle(10_000, [0], { 1: 100 }), shuffle(11_000, [0], { 1: 100 }), shuffle(100_000, [2], { 2: 50 })],
    3,
    20,
  );
  const bytesPerMs = (100 * MIB) / 1_000;
  const seen: (readonly number[])[] = [];
  const { tookMs } = replayPhases(phases, { racks: 3, bytesPerMs }, (index, { down }) => {
    seen.push(down.map((left) => left / bytesPerMs));
    return phases[index]?.recorded ?? [];
  });
  // 100 MiB a second. The first has its links for itself for the second that it needs; nobody waits for the third.
  expect(tookMs.map((ms) => Math.round(ms))).toEqual([1_000, 1_000, 0]);
  expect(seen.slice(0, 3)).toEqual([
    [1, 1, 1],
    [1, 1, 1],
    [1, 1, 1],
  ]);
  const together = phases.map((phase) => ({ ...phase, submittedAtMs: 10_000 }));
  const left: (readonly number[])[] = [];
  const replayed = replayPhases(together, { racks: 3, bytesPerMs }, (index, { down }) => {
    left.push(down.map((each) => each / bytesPerMs));
    return phases[index]?.recorded ?? [];
  });
  expect(replayed.tookMs.map((ms) => Math.round(ms))).toEqual([2_000, 2_000, 0]);
  expect(left.slice(0, 3)).toEqual([
    [1, 1, 1],
    [1, 0.5, 1],
    [1, 1 / 3, 1],
  ]);
});

it('is near the ideal where all others are placed by the rule too, and not where they were recorded', async () => {
  // Every shuffle sends from two racks into one and the same rack of the 150, as it was recorded; Mantri's rule spreads them.
  const jobs = Array.from({ length: 6 }, (_, job) =>
    shuffle(job * 60_000, [2 * job + 10, 2 * job + 11], { 3: 60 * 256 }),
  );
  const { result } = await runExperiment(mantriPlacement, {
    seed: 1,
    count: 1,
    traces: new Map([['coflow', jobs]]),
  });
  const secondsOf = (scheme: string, table?: string): number =>
    Number(
      result.rows.find(
        (row) => row['phases'] === 'all' && row['scheme'] === scheme && row['table'] === table,
      )?.['seconds'],
    );
  const alone = 'one job placed so, all others as recorded';
  const [inside, beside] = [undefined, alone].map(
    (table) => secondsOf('mantri', table) / secondsOf('ideal reduce', table),
  );
  expect(inside).toBeLessThan(1.05);
  expect(beside).toBeGreaterThanOrEqual((inside ?? 0) - 0.001);
  const hours = result.rows.filter((row) => row['table'] === 'the whole hour placed by one scheme');
  const hour = (scheme: string) => Number(hours.find((row) => row['scheme'] === scheme)?.['seconds']);
  expect(hours.map((row) => row['scheme'])).toEqual(['first free slot', 'mantri', 'start', 'equal']);
  expect(hour('mantri')).toBeLessThan(hour('first free slot') / 2);
});
