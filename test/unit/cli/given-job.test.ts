import { expect, it } from 'vitest';
import { oneLine } from '../../../src/report/format.ts';
import { FakeService, jobId } from './fake-service.ts';

it.each([
  ['status'],
  ['attempts'],
  ['watch'],
  ['cancel'],
  ['deadline', '10m'],
  ['get', 'out'],
  ['report'],
  ['explain'],
  ['logs'],
  ['simulate', '--replay'],
])('refuses what can be no job id before anybody is asked: %s', async (command, ...more) => {
  const service = new FakeService();
  await service.start();
  for (const text of ['../x', ' ', 'x', '..%2Fx', 'words-0123456789AB', `${jobId}/attempts`, `${jobId}\n`]) {
    const args = more[0] === '--replay' ? [command, ...more, text] : [command, text, ...more];
    expect(await service.run(...args)).toEqual({
      exitCode: 2,
      out: '',
      err: `outrider: "${oneLine(text)}" is no id of a job, such as wordcount-0123456789ab: "outrider list" names them\n`,
    });
  }
  expect(service.requests).toEqual([]);
});
