import { access, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { expectNothingHeld } from '../support/nothing-left.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

/** A twentieth of it is what clones may take: two slots, as many as a lone task and its clone are charged. */
const slots = 40;
const text = Buffer.from('one\ntwo\nthree\n');

let system: EmbeddedSystem;
let input: string;
let marks: string;

beforeAll(async () => {
  marks = await mkdtemp(join(tmpdir(), 'outrider-marks-'));
  system = await EmbeddedSystem.start({
    slots,
    parameters: { [ParameterName.heartbeatMs]: '300', [ParameterName.tickMs]: '100' },
  });
  input = await system.put('lines', text);
});

afterAll(async () => {
  await system.stop();
  await rm(marks, { recursive: true, force: true });
});

/** Whoever is first to make the directory straggles, for `$1` seconds, and tells when it is through. */
const program = 'if mkdir "$0" 2>/dev/null; then sleep "$1" && mkdir "$0/over"; fi; cat';

/** A job of one task that names no policy. */
const lone = (name: string, stragglesS: number): JobSpecInput => ({
  name,
  stages: [
    {
      name: 'only',
      operator: 'exec',
      options: { command: ['sh', '-c', program, join(marks, name), String(stragglesS)] },
      inputs: [{ s3: [input] }],
    },
  ],
});

const isOver = (name: string): Promise<boolean> =>
  access(join(marks, name, 'over')).then(
    () => true,
    () => false,
  );

it('a lone task is not cloned while nobody knows how often attempts straggle, and the log tells so', async () => {
  const jobId = await system.submit(lone('unmeasured', 0.2));
  const record = await system.ended(jobId);
  expect(record).toMatchObject({ state: 'succeeded', attempts: { launched: 1, clones: 0, backups: 0 } });
  expect(await system.output(record)).toEqual(text);
  expect(await system.decisions(jobId)).toContainEqual({
    kind: 'refuse',
    taskId: 'only/0',
    reason: 'unmeasured',
    facts: {
      stragglerProbability: 0.1,
      tasks: 1,
      copies: 2,
      copiesWanted: 2,
      copiesSeen: 0,
      copiesNeeded: 100,
    },
  });
});

it('a lone task is cloned where many straggle: the first of the two wins, and the other is stopped', async () => {
  await system.addStragglers({ attempts: 100, stragglers: 20 });
  const jobId = await system.submit(lone('measured', 60));
  const record = await system.ended(jobId);
  expect(record).toMatchObject({ state: 'succeeded', attempts: { launched: 2, clones: 1, backups: 0 } });
  expect(await system.output(record)).toEqual(text);
  const decisions = await system.decisions(jobId);
  expect(decisions.filter(({ kind }) => kind === 'clone-stage')).toMatchObject([
    { stage: 0, copies: 2, tasks: 1, facts: { stragglerProbability: 0.2, chargedSlots: 2 } },
  ]);
  expect(decisions).toContainEqual(expect.objectContaining({ kind: 'cancel', reason: 'sibling-won' }));
  await expectNothingHeld(system, 15_000);
  expect(await isOver('measured')).toBe(false);
});
