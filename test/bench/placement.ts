/**
 * Mantri's placement of 1,000 reduce tasks over 150 zones: the time of one answer, and how far from the optimum it can
 * be at most. Run: `node test/bench/placement.ts [--json]`.
 */
import { placeTasks } from '../../src/core/policy/mantri/placement.ts';
import { createRng } from '../../src/lib/rng.ts';

const rng = createRng('bench/placement');
const zones = 150;
const links = (): number[] => Array.from({ length: zones }, () => 0.3 + rng.next());

const rows = [100, 1_000].map((tasks) => {
  const inputs = Array.from({ length: tasks }, () => {
    const size = 1 + 9 * rng.next() ** 3;
    return Array.from({ length: zones }, () => size * rng.next());
  });
  const problem = { inputs, up: links(), down: links() };
  const runs = Array.from({ length: 5 }, () => {
    const began = performance.now();
    const { cost, atLeast } = placeTasks(problem);
    return { ms: performance.now() - began, ratio: cost / atLeast };
  }).sort((a, b) => a.ms - b.ms);
  const [ms = 0, ratio = 0] = [runs[2]?.ms, runs[2]?.ratio];
  return { tasks, zones, ms: Math.round(ms), atMostAboveOptimum: Math.round((ratio - 1) * 1_000) / 1_000 };
});
if (process.argv.includes('--json')) console.log(JSON.stringify(rows));
else console.table(rows);
