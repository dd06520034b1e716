/**
 * What jobs cost beside their compute, part by part, by the requests that production's code makes in virtual time.
 * Run: `node test/bench/job-cost.ts [--json] [--case NAME]`.
 */
import { type CostCase, costCases } from '../support/cost-cases.ts';
import { billJob } from '../support/costed-job.ts';

const percent = (share: number): string => `${(share * 100).toFixed(3)} %`;
const isJson = process.argv.includes('--json');
const at = process.argv.indexOf('--case');
const wanted = at < 0 ? undefined : process.argv[at + 1];
const bills: unknown[] = [];
for (const [name, { most, ...job }] of Object.entries<CostCase>(costCases)) {
  if (wanted !== undefined && !name.includes(wanted)) continue;
  const { rows, compute, overhead, scheduling, wallMs, attempts, job: record } = await billJob(job);
  const within = overhead <= most.all && scheduling <= (most.scheduling ?? Infinity);
  bills.push({ name, compute, overhead, scheduling, most, within, rows, told: record.costs });
  if (isJson) continue;
  console.log(
    `${name}: ${within ? 'within' : 'OVER'}; ${String(attempts)} attempts, ${String(wallMs / 1_000)} s, compute $${compute.toFixed(5)}, ` +
      `all else ${percent(overhead)} (at most ${percent(most.all)}), records and scheduling ${percent(scheduling)}` +
      (most.scheduling === undefined ? '' : ` (at most ${percent(most.scheduling)})`),
  );
  console.table(
    rows.map((row) => ({
      part: row.part,
      count: row.count,
      dollars: row.dollars.toFixed(7),
      share: percent(row.share),
    })),
  );
  console.log('as the job tells it:', record.costs, record.requests);
}
if (isJson) console.log(JSON.stringify(bills));
