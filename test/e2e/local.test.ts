import { readdir, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
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
    expect(JSON.parse(listed.out)).toMatchObject({ jobs: [{ name: 'twice' }, { name: 'wordcount' }] });

    local.process.kill('SIGINT');
    expect((await local.finished).exitCode).toBe(0);
    await place.expectNoProcesses();
    expect(await readdir(place.path('.outrider'))).not.toContain('connection.json');
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
      err: `outrider: port ${String(port)} is taken: end what listens there, or give another --port\n`,
    });
    await place.expectNoProcesses();
  });
});
