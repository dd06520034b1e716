import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { type AttemptId, attemptParts } from '../../src/contracts/ids.ts';
import type { AttemptPayload } from '../../src/contracts/payloads.ts';
import type { AttemptRecord } from '../../src/contracts/records.ts';
import { epochMs } from '../../src/contracts/units.ts';
import { createRng } from '../../src/lib/rng.ts';
import { Cluster } from '../../src/sim/cluster.ts';
import { EventQueue } from '../../src/sim/event-queue.ts';
import { ObservedStore } from '../../src/sim/observed-store.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { buildJobs, taskOfJob } from '../../src/sim/sim-job.ts';
import type { Ending } from '../../src/sim/sim-worker.ts';
import { VirtualClock } from '../../src/sim/virtual-clock.ts';
import { scenarioOf } from './scenarios.ts';

/** What became of an attempt: when it left its slot and how, and its last record. */
export interface BenchOutcome {
  readonly atMs: number;
  readonly ending: Ending;
  readonly record: AttemptRecord | undefined;
}

/** The machines of a scenario and its first job, without a scheduler: attempts are launched by hand. */
export function clusterBench(input: ScenarioInput) {
  const scenario = scenarioOf(input);
  const queue = new EventQueue();
  const clock = new VirtualClock(queue);
  const rng = createRng('bench');
  const jobs = buildJobs(scenario, 'bench', rng.fork('jobs'));
  const job = jobs[0];
  if (job === undefined) throw new Error('the scenario has no job');
  const space = { jobId: job.id, shards: 1 };
  const store = new ObservedStore(new MemoryAttemptStore(), {
    onStopOrdered: () => Promise.resolve(),
    onCommitted: (jobId, result) => {
      cluster.keepOutput(jobId, result);
    },
    onKept: (jobId, result) => {
      cluster.keepReplica(jobId, result);
    },
  });
  const left = new Map<AttemptId, { atMs: number; ending: Ending }>();
  const cluster: Cluster = new Cluster({
    scenario,
    queue,
    now: () => clock.now(),
    store,
    jobs: new Map([[job.id, job]]),
    rng: rng.fork('cluster'),
    onLeave: ({ assignment }, ending) => left.set(assignment.attemptId, { atMs: clock.now(), ending }),
  });

  const nodes = cluster.pool.nodes.map(({ name }) => name);

  /** Launches an attempt of the job at a time, on the node of a place or on any. */
  const launchAt = (
    atMs: number,
    attemptId: AttemptId,
    {
      node,
      ...more
    }: Pick<AttemptPayload, 'avoid' | 'copies' | 'keepOutput'> & { readonly node?: number } = {},
  ): void => {
    const avoidNodes = node === undefined ? [] : nodes.filter((name) => name !== `node-${node}`);
    const { stage: name, task } = attemptParts(attemptId);
    const { upstream } = taskOfJob(job, name, task).stage.scenario;
    const payload = {
      jobId: job.id,
      attemptId,
      shards: 1,
      stageKey: '',
      inputs: upstream.map((name) => ({ key: name, start: 0, end: 0 })),
      heartbeatMs: 1_000,
      ...more,
    };
    const run = async (): Promise<void> => {
      await store.create(space, attemptId, clock.now());
      if (cluster.deliver({ payload, avoidNodes, kind: 'lambda', size: 'medium' }) === 'full')
        throw new Error(`no slot for ${attemptId}`);
    };
    queue.schedule(epochMs(atMs), { kind: 'test', subject: attemptId, run });
  };

  /** Tells an attempt to stop with its next report. */
  const cancelAt = (atMs: number, attemptId: AttemptId): void => {
    const run = (): Promise<void> => store.orderCancel(space, attemptId);
    queue.schedule(epochMs(atMs), { kind: 'test', subject: attemptId, run });
  };

  /** Runs until nothing is left to happen. */
  const run = async (): Promise<(attemptId: AttemptId) => BenchOutcome> => {
    for (let event = queue.pop(); event !== undefined; event = queue.pop()) {
      clock.advanceTo(event.at);
      await event.run();
    }
    const { attempts } = await store.all(space);
    return (attemptId) => {
      const outcome = left.get(attemptId);
      if (outcome === undefined) throw new Error(`${attemptId} has not left`);
      return { ...outcome, record: attempts.find((each) => each.attemptId === attemptId) };
    };
  };
  return { launchAt, cancelAt, run };
}
