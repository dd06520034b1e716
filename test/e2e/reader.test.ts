import { readdir, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { Workplace } from './command.ts';

describe('a command whose reader has gone', () => {
  it.each([['--help'], ['experiments', '--json']])('ends without a word: %s', async (...args) => {
    const place = await Workplace.make();
    const started = place.start(...args);
    started.process.stdout?.destroy();
    // What a shell says of a command that an interrupt ended.
    expect(await started.finished).toEqual({ exitCode: 130, out: '', err: '' });
  });

  it('takes its job and its stack down first, and leaves no copies of the inputs', async () => {
    const place = await Workplace.make();
    await writeFile(place.path('f.txt'), 'b a b\n');
    const stage = (name: string, script: string, input: object) => {
      const options = { command: ['sh', '-c', script, place.path('go')] };
      return { name, operator: 'exec', options, inputs: [input] };
    };
    const stages = [
      stage('goes', 'until [ -e "$0" ]; do sleep 0.1; done; cat', { s3: ['f.txt'] }),
      stage('waits', 'sleep 600; cat', { stage: 'goes', pattern: 'one-to-one' }),
    ];
    await writeFile(place.path('job.json'), JSON.stringify({ name: 'waits', stages }));
    const run = place.start('run', 'job.json', '--output', 'out', '--slots', '2');
    await run.saying('job running');
    run.process.stdout?.destroy();
    run.process.stderr?.destroy();
    // What it says of that meets nobody, and what it says of the take-down, some time later, does not either.
    await writeFile(place.path('go'), '');
    expect((await run.finished).exitCode).toBe(130);
    expect(await readdir(place.temporary)).toEqual([]);
    await place.expectNoProcesses();
  });
});
