import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { Workplace } from './command.ts';

/** A spec beside a program of its own, which reads what came with it. */
async function program(place: Workplace, script: string): Promise<void> {
  await mkdir(place.path('job', 'lib'), { recursive: true });
  await writeFile(place.path('job', 'lib', 'suffix.txt'), '!');
  await writeFile(place.path('job', 'shout.sh'), `#!/bin/sh\n${script}\n`);
  await chmod(place.path('job', 'shout.sh'), 0o755);
  const stage = {
    name: 'shout',
    operator: 'exec',
    options: { command: ['shout.sh', 'hello'], files: ['shout.sh', 'lib'] },
    inputs: [{ s3: ['../in/words.txt'] }],
  };
  await writeFile(place.path('job', 'spec.json'), JSON.stringify({ name: 'shout', stages: [stage] }));
  await mkdir(place.path('in'));
  await writeFile(place.path('in', 'words.txt'), 'one\ntwo\n');
}

describe('a program that comes with its job', { timeout: 240_000 }, () => {
  it('runs with its files beside it, and knows which work it does', async () => {
    const place = await Workplace.make();
    await program(
      place,
      'echo "$1 $OUTRIDER_TASK $OUTRIDER_ATTEMPT $OUTRIDER_OFFSET ${OUTRIDER_INPUT##*words}"; sed "s/$/$(cat lib/suffix.txt)/"',
    );
    const done = await place.run('run', 'job/spec.json', '--output', 'out');
    expect([done.exitCode, done.err]).toEqual([0, expect.stringContaining('job succeeded')]);
    expect((await place.parts('out')).toString()).toBe('hello 0 0 0 .txt\none!\ntwo!\n');
  });

  it('fails with its last words, and the name of the file that it read', async () => {
    const place = await Workplace.make();
    await program(place, 'echo "first of all" >&2; echo "no such colour: mauve" >&2; exit 3');
    const done = await place.run('run', 'job/spec.json', '--output', 'out');
    expect(done.exitCode).toBe(1);
    expect(done.err).toContain(
      `stage shout, task 0 failed alike twice: shout.sh ended with code 3: first of all | no such colour: mauve (reading ${place.path('in', 'words.txt')}, bytes 0 to 8)`,
    );
  });

  it('is heard in the log of its job when its stack is gone, also where it ended well', async () => {
    const place = await Workplace.make();
    await program(place, 'echo "mind the gap" >&2; cat');
    const done = await place.run('run', 'job/spec.json', '--output', 'out');
    expect(done.exitCode).toBe(0);
    const jobId = /^(shout-[0-9a-f]{12}) succeeded/m.exec(done.out)?.[1] ?? '';
    const logs = await place.run('logs', jobId, '--task', 'shout/0');
    expect([logs.exitCode, logs.err]).toEqual([0, '']);
    expect(logs.out).toMatch(/^\d\d:\d\d:\d\d\.\d{3} shout\/0\/0 ! mind the gap$/m);
    expect(logs.out).toMatch(/shout\/0\/0 launched {2}reason first$/m);
    expect((await place.run('attempts', jobId)).out).toMatch(/^shout\/0\/0 +done /m);
    const warned = await place.run('logs', jobId, '--level', 'warn', '--json');
    expect(JSON.parse(warned.out)).toMatchObject({
      jobId,
      lines: [{ level: 'warn', about: 'shout/0/0', stream: 'stderr', message: 'mind the gap' }],
    });
    const other = await place.run('logs', jobId, '--task', 'shout/7');
    expect([other.exitCode, other.err]).toEqual([
      2,
      `outrider: job ${jobId} has no task "shout/7": stage shout has tasks 0 to 0\n`,
    ]);
  });
});
