import { expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { takeLaunches } from '../../../src/app/make-launches.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { runTick } from '../../../src/app/tick-job.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import type { LaunchOutcome } from '../../../src/ports/launcher.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const tasks = 20;

/** A job of which Lambda has answered so to its first launches. */
async function jobAnswered(answer: Omit<LaunchOutcome, 'attemptId'>) {
  const system = new ScriptedSystem();
  let asked = 0;
  const deps: SchedulerDeps = {
    ...system.deps,
    launcher: {
      ...system.deps.launcher,
      terms: () => ({ waits: true, takesPacks: false }),
      launch: (requests) => {
        asked += requests.length;
        return Promise.resolve(requests.map(({ payload: { attemptId } }) => ({ attemptId, ...answer })));
      },
    },
  };
  await system.objects.write({ bucket: 'data', key: 'in' }, Buffer.from('one '.repeat(tasks)));
  const stage = { name: 'map', operator: 'grep', inputs: [{ s3: ['s3://data/in'], splitBytes: 4 }] };
  const { jobId } = await submitJob(system, { spec: { name: 'words', stages: [stage] } });
  await planJob(system, jobId);
  const until = later(system.clock.now(), durationMs(60_000));
  const session = await enterJob(deps, jobId, { owner: 'first', until });
  await runTick(deps, session); // Opens the stage.
  await runTick(deps, session);
  await system.clock.advance(1);
  takeLaunches(deps, session, system.clock.now());
  return { asked, throttled: session.watch.throttled.lambda, live: session.state.live.size };
}

it('that nobody has answered are owed again, and say nothing of the room for launches, as refused ones do', async () => {
  const answers = await jobAnswered({ outcome: 'throttled', isUnanswered: true });
  expect(answers.asked).toBeGreaterThan(0);
  expect(answers).toMatchObject({ throttled: 0, live: 0 });
  const refused = await jobAnswered({ outcome: 'throttled' });
  expect(refused).toEqual({ asked: answers.asked, throttled: answers.asked, live: 0 });
});
