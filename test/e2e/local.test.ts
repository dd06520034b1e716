import { readdir, readFile, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { Workplace } from './command.ts';

const answerSchema = z.object({ jobId: z.string(), started: z.boolean() });

describe('outrider local', () => {
  it('serves jobs until it is interrupted', async () => {
    const place = await Workplace.make();
    await writeFile(place.path('f.txt'), 'b a b\n');
    const local = place.start('local', '--slots', '2');
    await local.saying('Ctrl-C ends it.');

    const again = await place.run('local');
    expect([again.exitCode, again.err]).toEqual([
      2,
      expect.stringMatching(/^outrider: --state-dir \.outrider is in use by process \d+: .*\n$/),
    ]);

    const submit = ['submit', 'wordcount', '--input', 'f.txt', '--wait', '--json'] as const;
    const waited = await place.run(...submit);
    expect([waited.exitCode, JSON.parse(waited.out)]).toMatchObject([0, { state: 'succeeded' }]);

    await writeFile(place.path('bad.ndjson'), '{"k":1}\n{"k":\n');
    const refused = await place.run(
      'submit',
      'groupby',
      '--input',
      'bad.ndjson',
      '--key',
      'k',
      '--agg',
      'count',
      '--wait',
    );
    expect([refused.exitCode, refused.out]).toEqual([
      1,
      expect.stringContaining(`${place.path('bad.ndjson')}:2`),
    ]);

    const spec = {
      name: 'twice',
      stages: [
        {
          name: 'find',
          operator: 'grep',
          options: { pattern: 'a' },
          inputs: [{ s3: ['s3://nowhere-at-all/x'] }],
        },
      ],
    };
    await writeFile(place.path('job.json'), JSON.stringify(spec));
    const first = await place.run('submit', 'job.json', '--client-token', 'once', '--json');
    const second = await place.run('submit', 'job.json', '--client-token', 'once', '--json');
    const ids = [first, second].map(({ out }) => answerSchema.parse(JSON.parse(out)));
    expect(ids.map(({ started }) => started)).toEqual([true, false]);
    expect(ids[1]?.jobId).toBe(ids[0]?.jobId);

    const jobId = ids[0]?.jobId ?? '';
    expect((await place.run('watch', jobId, '--quiet')).exitCode).toBe(1);
    expect((await place.run('status', jobId, '--json')).exitCode).toBe(0);
    expect((await place.run('status', 'nobody-0123456789ab')).err).toBe(
      'outrider: no such job: nobody-0123456789ab\n',
    );
    const listed = await place.run('list', '--json');
    expect(JSON.parse(listed.out)).toMatchObject({
      jobs: [{ name: 'twice' }, { name: 'groupby' }, { name: 'wordcount' }],
    });

    local.process.kill('SIGINT');
    expect((await local.finished).exitCode).toBe(0);
    await place.expectNoProcesses();
    expect(await readdir(place.path('.outrider'))).not.toContain('connection.json');
    const logs = await place.run('logs', jobId);
    expect([logs.exitCode, logs.out]).toEqual([0, expect.stringContaining('nowhere-at-all')]);

    const environment = await readFile(place.path('.outrider', 'environment.sh'), 'utf8');
    const restarted = place.start('local', '--slots', '2');
    expect(await restarted.saying('Ctrl-C ends it.')).toMatch(/^starting\n/m);
    expect(await readFile(place.path('.outrider', 'environment.sh'), 'utf8')).toBe(environment);
    restarted.process.kill('SIGINT');
    expect((await restarted.finished).exitCode).toBe(0);
  });

  it('tells of a job that had not ended when it was, and goes on with that when it is started again', async () => {
    const place = await Workplace.make();
    await writeFile(place.path('f.txt'), 'b a b\n');
    const local = place.start('local', '--slots', '2');
    await local.saying('Ctrl-C ends it.');
    const stage = {
      name: 'waits',
      operator: 'exec',
      options: {
        command: ['sh', '-c', 'if mkdir "$0" 2>/dev/null; then sleep 600; fi; cat', place.path('mark')],
      },
      inputs: [{ s3: ['f.txt'] }],
    };
    await writeFile(
      place.path('job.json'),
      JSON.stringify({ name: 'waits', policy: 'none', stages: [stage] }),
    );
    const { out } = await place.run('submit', 'job.json', '--json');
    const { jobId } = answerSchema.parse(JSON.parse(out));
    while (!(await readdir(place.dir)).includes('mark')) await setTimeout(100);
    local.process.kill('SIGINT');
    expect((await local.finished).exitCode).toBe(0);

    const status = await place.run('status', jobId, '--json');
    expect([status.exitCode, status.err, JSON.parse(status.out)]).toMatchObject([
      0,
      `job ${jobId} had not ended when its stack did: "outrider local" with the same --state-dir goes on with it\n`,
      { jobId, state: 'running' },
    ]);
    const again = place.start('local', '--slots', '2');
    await again.saying('Ctrl-C ends it.');
    const watched = await place.run('watch', jobId, '--quiet', '--json');
    expect([watched.exitCode, JSON.parse(watched.out)]).toMatchObject([0, { state: 'succeeded' }]);
    expect((await place.run('status', jobId)).err).toBe('');
    again.process.kill('SIGINT');
    expect((await again.finished).exitCode).toBe(0);
    await place.expectNoProcesses();
  });

  it('says in one line that its port is taken', async () => {
    const place = await Workplace.make();
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => {
      server.close();
    });
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const result = await place.run('local', '--port', String(port));
    expect(result).toEqual({
      exitCode: 2,
      out: '',
      err: `starting\noutrider: port ${String(port)} is taken: end what listens there, or give another --port\n`,
    });
    await place.expectNoProcesses();
  });
});
