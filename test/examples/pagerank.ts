// PageRank over five rounds: each page hands its rank on to the pages that it links to.
import { job, read } from 'outrider';

const rounds = 5;
const damping = 0.85;

const links = read
  .csv({ columns: ['page', 'to'] })
  .groupBy(({ page }) => page)
  .map(([page, all]) => ({ page, to: all.map(({ to }) => to) }));
const byPage = links.keyBy(({ page }) => page);

let ranks = links.map(({ page }) => ({ page, rank: 1 }));
for (let round = 0; round < rounds; round++) {
  ranks = byPage
    .join(ranks.keyBy(({ page }) => page))
    // A page that nobody links to keeps what everyone has.
    .flatMap(([page, [{ to }, { rank }]]) => [
      { page, rank: 0 },
      ...to.map((target) => ({ page: target, rank: rank / to.length })),
    ])
    .keyBy(({ page }) => page)
    .aggregate({
      zero: () => 0,
      add: (sum: number, { rank }) => sum + rank,
      merge: (a, b) => a + b,
    })
    .map(([page, sum]) => ({ page, rank: 1 - damping + damping * sum }));
}

export default job(
  'pagerank',
  ranks
    .map(({ page, rank }) => ({ page, rank: rank.toFixed(6) }))
    .sortBy(({ page }) => page)
    .write.csv(['page', 'rank']),
);
