import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { objectStoreOf } from '../../../src/cli/embedded-stack.ts';
import { collect } from '../../support/worker-fixtures.ts';
import { FakeService } from './fake-service.ts';

const full = 'the disk is full where the stack keeps its data, /d, and no new job can be begun';
/** As the front of a local stack refuses a submission before anybody is asked. */
const byFront: [number, unknown] = [507, { error: 'StoreRefused', message: full }];
/** As the service answers once the job is on record, and its execution is refused. */
const ofStart = (error: string): [number, unknown] => [502, { error, message: 'start was refused: why' }];

describe('a submission that is refused for what may change', () => {
  let service = new FakeService();
  beforeEach(async () => {
    service = new FakeService();
    await service.start();
  });

  const submit = (...more: readonly string[]) =>
    service.run(
      ...['submit', 'wordcount', '--input', 's3://books/en/', '--output', 's3://results/c/', '--quiet'],
      ...more,
    );
  const hint = (token: string): string =>
    `the job may have been accepted: submit it again with --client-token ${token}, which starts it once\n`;
  const tokenSent = (): string => (service.bodies.at(-1) as { clientToken: string }).clientToken;

  it('tells no token where the front alone was asked, and once', async () => {
    service.submitRefusals.push(byFront);
    expect(await submit()).toEqual({ exitCode: 2, out: '', err: `outrider: ${full}\n` });
    expect(service.bodies).toHaveLength(1);
  });

  it('tells the token where an earlier try may have been accepted', async () => {
    service.submitRefusals.push([504, { message: 'Endpoint request timed out' }], byFront);
    const lost = await submit();
    expect(lost).toEqual({ exitCode: 2, out: '', err: `${hint(tokenSent())}outrider: ${full}\n` });
    service.submitRefusals.push(byFront);
    const again = await submit('--client-token', 't1');
    expect(again).toEqual({ exitCode: 2, out: '', err: `${hint('t1')}outrider: ${full}\n` });
  });

  it.each(['StoreRefused', 'AccessDenied'])(
    'tells the token of a job that is on record and was not started: %s',
    async (error) => {
      service.submitRefusals.push(ofStart(error));
      const { exitCode, err } = await submit();
      expect([exitCode, err]).toEqual([2, `${hint(tokenSent())}outrider: start was refused: why\n`]);
    },
  );

  it.each<[number, string]>([
    [400, 'InvalidInput'],
    [409, 'Conflict'],
    [404, 'NotFound'],
  ])('tells it whatever the refusal after such a try is for: %i', async (status, error) => {
    service.submitRefusals.push([504, { message: 'timed out' }], [status, { error, message: 'why' }]);
    const { exitCode, err } = await submit();
    expect([exitCode, err]).toEqual([2, `${hint(tokenSent())}outrider: why\n`]);
  });

  it('keeps the local files of a job that may run, and removes those of one that is refused', async () => {
    await writeFile(join(service.cwd, 'a.txt'), 'a\n');
    const { connection } = service;
    if (connection === undefined) throw new Error('not started');
    const staged = async (): Promise<number> => {
      const found = await collect(objectStoreOf(connection).list({ bucket: 'data', key: 'input/' }));
      return found.length;
    };
    const wrong: [number, unknown] = [400, { error: 'InvalidInput', message: 'budget: no' }];
    const submitFile = () => service.run('submit', 'wordcount', '--input', 'a.txt', '--quiet');
    service.submitRefusals.push(wrong);
    expect((await submitFile()).err).toContain('outrider: budget: no\n');
    expect(await staged()).toBe(0);
    service.submitRefusals.push([504, { message: 'timed out' }], wrong);
    expect((await submitFile()).err).toContain(hint(tokenSent()));
    expect(await staged()).toBe(1);
  });

  it('tells no token of a job whose spec is wrong', async () => {
    service.submitRefusals.push([400, { error: 'InvalidInput', message: 'budget: no' }]);
    expect(await submit()).toEqual({ exitCode: 2, out: '', err: 'outrider: budget: no\n' });
  });
});
