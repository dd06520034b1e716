import { fileURLToPath } from 'node:url';
import { it } from 'vitest';
import { firstJob } from '../support/first-job.ts';
import { Workplace } from './command.ts';

const command = fileURLToPath(new URL('../../src/cli/outrider.js', import.meta.url));

it('writes, runs, breaks, mends, submits, watches and fetches a job of one’s own', async () => {
  const place = await Workplace.make();
  const env = { ...process.env, TMPDIR: place.temporary, NO_COLOR: '1' };
  await firstJob([process.execPath, command], place.dir, env);
  await place.expectNoProcesses();
}, 600_000);
