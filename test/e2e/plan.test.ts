import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { planResponseSchema } from '../../src/contracts/plans.ts';
import { Workplace } from './command.ts';

it('plans a job of a stack by nothing, by jobs like it, and by its own runs, and says which', async () => {
  const place = await Workplace.make();
  await writeFile(place.path('f.txt'), 'b a b\n'.repeat(10_000));
  const local = place.start('local', '--slots', '2');
  await local.saying('Ctrl-C ends it.');
  const words = ['wordcount', '--input', 'f.txt', '--partitions', '2'] as const;
  const plan = async () => {
    const { exitCode, out, err } = await place.run('plan', ...words, '--deadline', '10m', '--json');
    expect(exitCode, err).toBe(0);
    return planResponseSchema.parse(JSON.parse(out));
  };

  const nothing = await plan();
  expect(nothing).toMatchObject({ basis: { kind: 'none' }, allocations: [], cheapest: null });
  expect(nothing.basis.says).toMatch(
    /^nothing: no finished run of wordcount is known; no finished job has run /,
  );

  const done = await place.run('submit', ...words, '--wait', '--json');
  expect(done.exitCode, done.err).toBe(0);
  const own = await plan();
  expect(own.basis).toEqual({ kind: 'own', runs: 1, says: '1 finished run, its own' });
  expect(own.allocations.map(({ slots, deadlineProbability }) => [slots, deadlineProbability])).toEqual([
    [1, 1],
    [2, 1],
  ]);
  expect(own.cheapest).not.toBeNull();
});
