import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { coreutils } from '../support/coreutils.ts';
import { Workplace } from './command.ts';
import { linesOf, otherActions, runExplained } from './explained-run.ts';

const tasks = 6;
const text = Buffer.from(Array.from({ length: 6_000 }, (_, line) => `${(line * 7919) % 6_000}\n`).join(''));

/** Notes down when each attempt's program begins and ends: two of one attempt would show. */
const noting = (place: Workplace): JobSpecInput => ({
  name: 'noting',
  stages: [
    {
      name: 'note',
      operator: 'exec',
      options: {
        command: [
          'sh',
          '-c',
          `echo "$OUTRIDER_TASK begins" >> ${place.path('notes')}; sleep 1; cat; echo "$OUTRIDER_TASK ends" >> ${place.path('notes')}`,
        ],
      },
      inputs: [{ s3: ['lines.txt'], splitBytes: Math.ceil(text.length / tasks) }],
      partitions: 1,
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'note', pattern: 'all-to-all' }] },
  ],
});

it('launches again what Lambda has accepted and lost, without blame, and starts nothing twice of what it has repeated', async () => {
  const place = await Workplace.make();
  await writeFile(place.path('lines.txt'), text);
  const {
    exitCode,
    report,
    explanation,
    text: told,
  } = await runExplained({
    place,
    job: noting(place),
    options: ['--slots', '4', '--inject', 'lose-invocation=1,duplicate-invocation=2'],
  });
  expect([exitCode, report.error]).toEqual([0, null]);
  expect(coreutils('sort', [], await place.parts('out')).equals(coreutils('sort', [], text))).toBe(true);
  const { injected } = report;
  if (injected === null) throw new Error('nothing was injected');
  expect(injected).toMatchObject({ lostInvocations: 1, duplicateInvocations: 2, killed: 0, throttled: 0 });
  const [lost = ''] = injected.attempts.lostInvocations;

  // The right action: the one that was lost is given up and launched again, once.
  expect(explanation.failures.map(({ attemptId }) => attemptId)).toEqual([lost]);
  expect(told).toContain(`${lost}: unclaimed`);
  expect(report.attempts).toMatchObject({ lost: 1, launched: tasks + 2 });
  expect(report.stages.map(({ failed }) => failed)).toEqual([1, 0]);
  // And no wrong one: no copies, nothing declined.
  expect(otherActions(explanation, 'retry', 'give-up')).toEqual([]);
  expect(report.attempts).toMatchObject({ backups: 0, restarts: 0, clones: 0, declined: 0 });

  // Whatever was repeated ran once, also where the two came to different workers.
  const notes = await linesOf(place, 'notes');
  const each = Array.from({ length: tasks }, (_, task) => [`${task} begins`, `${task} ends`]).flat();
  expect([...notes].sort()).toEqual(each.sort());
}, 180_000);
