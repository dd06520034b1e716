import fc from 'fast-check';
import { answer } from '../../functions/api/routes.ts';
import { finalJobStates } from '../../src/contracts/records.ts';
import { stageDescriptionSchema } from '../../src/contracts/plan.ts';
import { parseJobId, taskOf } from '../../src/contracts/ids.ts';
import type { AttemptPayload } from '../../src/contracts/payloads.ts';
import { operators } from '../../src/operators/registry.ts';
import { progress, ScriptedSystem } from '../support/scripted-job.ts';
import type { Json } from './arbitraries.ts';
import { type Fuzzer, hold } from './fuzzer.ts';
import { arbSpec } from './specs.ts';
import { driveJob } from './virtual-job.ts';

/** Beyond what retries, leases and entries of the scheduler may take: in virtual time. */
const hangMs = 2 * 3_600_000;

/** A system whose API checks options as the real one does, and whose workers find all work easy. */
export function easySystem(): ScriptedSystem {
  const system = new ScriptedSystem();
  system.onLaunch = async (payload) => {
    await workEasily(system, payload);
    return 'accepted';
  };
  return Object.assign(system, {
    checkOperator: (name: keyof typeof operators, options: Readonly<Record<string, unknown>>) => {
      operators[name].check(options);
    },
  });
}

/** Commits an output of as many partitions as the stage has. */
export async function workEasily(system: ScriptedSystem, payload: AttemptPayload): Promise<void> {
  if ((await system.claim(payload)) === 'refused') return;
  const bytes = await system.objects.readAll({ bucket: system.dataBucket, key: payload.stageKey });
  const { partitions, output } = stageDescriptionSchema.parse(JSON.parse(Buffer.from(bytes).toString()));
  const { attemptId } = payload;
  const zeros = Array.from({ length: partitions }, () => 0);
  await system.attempts.commit(system.space(payload), {
    taskId: taskOf(attemptId),
    attemptId,
    committedAt: system.clock.now(),
    ...(output === 'final' ? { final: { kind: 'empty' } } : { partitions: { lengths: zeros, crcs: zeros } }),
    bytesIn: 1,
    bytesOut: 0,
    recordsIn: 1,
    recordsOut: 0,
    counters: {},
  });
  await system.attempts.end(
    system.space(payload),
    attemptId,
    { state: 'done', progress: progress(1) },
    system.clock.now(),
  );
}

export async function putSources(system: ScriptedSystem): Promise<void> {
  const bodies = ['k,v\na,1\nb,2\n', 'k,v\nc,3\n', '', 'k,v\na,1'];
  for (const [index, body] of bodies.entries())
    await system.objects.write({ bucket: 'data', key: `in/${String(index)}` }, Buffer.from(body));
}

/** Submits a body; the id where it was taken. */
async function submit(system: ScriptedSystem, body: string): Promise<string | undefined> {
  const { statusCode, body: text } = await answer(system, {
    httpMethod: 'POST',
    resource: '/jobs',
    pathParameters: null,
    queryStringParameters: null,
    body,
    isBase64Encoded: false,
  });
  const told = JSON.parse(text) as { jobId?: string; error?: string; message?: string };
  hold(statusCode < 500, 'a spec is taken or refused', [statusCode, told]);
  if (statusCode < 300) return told.jobId;
  hold(typeof told.message === 'string' && told.message !== '', 'a refusal says why', told);
  return undefined;
}

/** Specs that were right until they were changed, through the API and, where it takes them, to the end of their jobs. */
export function specFuzzer(): Fuzzer {
  const request = (spec: Json): string => JSON.stringify({ spec });
  return {
    name: 'specs',
    what: 'changed specs are refused with a 4xx, or their jobs end',
    runs: 400,
    property: fc.asyncProperty(arbSpec, async (spec) => {
      const system = easySystem();
      await putSources(system);
      const jobId = parseJobId((await submit(system, request(spec))) ?? '');
      if (jobId === undefined) return;
      const deps = { ...system.deps, ids: system.ids };
      await system.whileTimePasses(driveJob(deps, jobId), hangMs);
      const job = await system.jobs.load(jobId);
      hold(job !== undefined && finalJobStates.includes(job.state), 'a job ends', job);
      if (job.state === 'failed')
        hold((job.error?.message ?? '') !== '', 'a job that failed says why', job.error);
    }),
  };
}
