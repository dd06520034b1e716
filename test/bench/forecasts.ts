/**
 * How long C(p, a) takes to compute for the largest job of Jockey's paper (110 stages, 8,496 vertices), as production
 * does after a run: 20 allocations, 50 simulated runs of each. Beside the events of that a second stands what the
 * simulator's heap does alone, with as many events in it: how much of the time is the simulation's own.
 * Run: `node test/bench/forecasts.ts [--json]`.
 */
import { jockeyFacts, jockeyJob, drawTimes } from '../../src/traces/generators/jockey-jobs.ts';
import { forecastTable } from '../../src/core/forecast/forecast-table.ts';
import type { JobProfile } from '../../src/core/forecast/job-profile.ts';
import { ascending } from '../../src/lib/quantiles.ts';
import { createRng } from '../../src/lib/rng.ts';
import { TimedHeap } from '../../src/lib/timed-heap.ts';

const totalSlots = 1_000;
const runs = 50;
const rng = createRng('bench/forecasts');

/** As it is learned of one run without outliers of its own: no task fails, so that each has one event. */
const profile: JobProfile = {
  stages: jockeyJob('G', rng).map((stage, index) => ({
    name: `s${String(index)}`,
    tasks: stage.tasks,
    inputs: stage.inputs,
    runs: [{ slots: 100, times: { cold: [], first: [], later: ascending(drawTimes(stage, rng)) } }],
    queueMs: [1_000, 5_000, 15_000],
    failureShare: 0,
  })),
};
const tasks = profile.stages.reduce((sum, stage) => sum + stage.tasks, 0);

function secondsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

/** Events a second of a heap that holds as many as there are slots: each is taken out, and a later one put in. */
function heapRate(held: number, events: number): number {
  const heap = new TimedHeap(held);
  const waits = Float64Array.from({ length: 4_096 }, () => rng.next() * 1_000);
  for (let id = 0; id < held; id++) heap.push(waits[id % waits.length] ?? 0, id);
  const seconds = secondsOf(() => {
    for (let event = 0; event < events; event++) {
      const { time } = heap;
      heap.push(time + (waits[event % waits.length] ?? 0), heap.pop());
    }
  });
  return events / seconds;
}

const table = { slots: 0 };
const cpuS = secondsOf(() => {
  table.slots = forecastTable({ profile, runs: 1 }, { totalSlots, rng }).slots.length;
});
const events = table.slots * runs * tasks;
const perS = events / cpuS;
const heapPerS = heapRate(100, 10_000_000);
const row = {
  job: `${String(jockeyFacts.G.stages)} stages, ${String(tasks)} tasks`,
  allocations: table.slots,
  runs,
  cpuS: Math.round(cpuS * 100) / 100,
  eventsPerS: Math.round(perS),
  heapEventsPerS: Math.round(heapPerS),
  ofHeap: Math.round((perS / heapPerS) * 100) / 100,
};
if (process.argv.includes('--json')) console.log(JSON.stringify([row]));
else console.table([row]);
