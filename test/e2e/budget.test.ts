import { mkdir, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { Workplace } from './command.ts';

async function textsIn(place: Workplace): Promise<void> {
  await mkdir(place.path('texts'));
  const line = 'to be or not to be, that is the question\n';
  for (let file = 0; file < 6; file++)
    await writeFile(place.path('texts', `${String(file)}.txt`), line.repeat(1_000));
}

const words = ['run', 'wordcount', '--input', 'texts', '--output', 'out', '--partitions', '2', '--json'];

describe('a budget, by the command', () => {
  it('ends a job that is to stop, with exit code 1 and a reason, and has launched next to nothing', async () => {
    const place = await Workplace.make();
    await textsIn(place);
    const result = await place.run(...words, '--budget', '0.000001', '--on-budget', 'stop');
    expect(result.exitCode).toBe(1);
    const report = JSON.parse(result.out) as {
      readonly error: { readonly name: string; readonly message: string };
      readonly attempts: { readonly launched: number };
      readonly output: readonly string[];
    };
    expect(report).toMatchObject({
      state: 'failed',
      budget: { dollars: 0.000001, onBudget: 'stop' },
      error: { name: 'BudgetReached' },
    });
    expect(report.error.message).toMatch(
      /^the budget of \$0\.000001 is used up: \$0\.\d+ counted so far, 3 tasks are still owed an attempt, and it is to stop there/,
    );
    // The submission and the plan have cost more already.
    expect(report.attempts.launched).toBe(0);
    expect(report.output).toEqual([]);
  });

  it('lets a job finish with one attempt of each task where nothing else is said, and do all within enough', async () => {
    const place = await Workplace.make();
    await textsIn(place);
    const result = await place.run(...words, '--budget', '0.000001', '--policy', 'mantri');
    expect(result.exitCode, result.err).toBe(0);
    expect(JSON.parse(result.out)).toMatchObject({
      state: 'succeeded',
      budget: { dollars: 0.000001, onBudget: 'finish' },
      attempts: { launched: 3, backups: 0, clones: 0, restarts: 0 },
      error: null,
    });
  });

  it('refuses what is none, and says what would be right', async () => {
    const place = await Workplace.make();
    await textsIn(place);
    const wrong = await place.run(...words, '--budget', 'much');
    expect(wrong.exitCode).toBe(2);
    expect(wrong.err).toMatch(/--budget "much" must be dollars above 0/);
    const alone = await place.run(...words, '--on-budget', 'stop');
    expect(alone.exitCode).toBe(2);
    expect(alone.err).toMatch(/onBudget must come with budget, the dollars at which it is to stop/);
  });
});
