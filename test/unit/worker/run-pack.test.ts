import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stopAttempts } from '../../../src/app/stop-attempts.ts';
import { type AttemptId, attemptIdOf } from '../../../src/contracts/ids.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import { type DurationMs, durationMs, later } from '../../../src/contracts/units.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import type { AttemptDeps } from '../../../src/worker/run-attempt.ts';
import { runPack } from '../../../src/worker/run-pack.ts';
import { latin1 } from '../../support/worker-fixtures.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

const idOf = (task: number): AttemptId => attemptIdOf('work', task, 0);

/** A worker whose tasks do what they are told by their number, and what it was told to do. */
class PackOfTest {
  readonly worker = new WorkerOfTest();
  readonly ran: number[] = [];
  readonly stage;

  constructor(run: (context: TaskContext, task: number) => Promise<void> = () => Promise.resolve()) {
    this.stage = {
      run: async (context: TaskContext) => {
        this.ran.push(context.task);
        await run(context, context.task);
      },
    };
  }

  deps(extra: Partial<AttemptDeps> = {}): AttemptDeps {
    return this.worker.deps(this.stage, { invocation: 'request-1', ...extra });
  }

  /** What a launch of the first task carries, with the others behind it. */
  async payload(tasks: number, nextTakesMs = 0): Promise<AttemptPayload> {
    const [first, ...next] = await Promise.all(
      Array.from({ length: tasks }, (_, task) => this.worker.prepare(this.stage, 0, task)),
    );
    if (first === undefined) throw new Error('a pack has a first attempt');
    return { ...first, next: next.map(({ attemptId, inputs }) => ({ attemptId, inputs })), nextTakesMs };
  }

  async states(): Promise<readonly string[]> {
    const { attempts } = await this.worker.attempts.all(this.worker.space);
    return attempts.toSorted((a, b) => (a.attemptId < b.attemptId ? -1 : 1)).map(({ state }) => state);
  }
}

describe('a worker with attempts that ride together', () => {
  it('declines all of them on a node that their launch says to avoid, and keeps it busy for a while', async () => {
    const pack = new PackOfTest();
    const { worker } = pack;
    const payload = await pack.payload(2);
    const on = async (node: string, avoid: AttemptPayload['avoid']): Promise<readonly string[]> =>
      runPack(pack.deps({ place: { node, zone: 'z' } }), { ...payload, avoid });
    let isFree = false;
    const declined = on('slow', { nodes: ['other', 'slow'], holdMs: 700 }).finally(() => (isFree = true));
    await worker.clock.advance(699);
    expect(isFree).toBe(false);
    await worker.clock.advance(1);
    expect(await declined).toEqual(['declined']);
    expect(pack.ran).toEqual([]);
    expect(await worker.attempt(idOf(0))).toMatchObject({
      state: 'lost',
      beat: 0,
      failure: { cause: 'declined', message: 'its node is to be avoided: slow' },
    });
    expect(await pack.states()).toEqual(['lost', 'launched']);
    expect((await worker.attempts.told(worker.space)).notes).toEqual([{ attemptId: idOf(0), kind: 'end' }]);
    // A second delivery, wherever it comes.
    expect(await on('slow', { nodes: ['slow'], holdMs: 0 })).toEqual(['refused']);
    expect(await on('good', { nodes: ['slow'], holdMs: 0 })).toEqual(['refused']);
  });

  it('claims one after the other, each once the one before has left its result and nothing else', async () => {
    const seen: string[][] = [];
    const dirs: string[] = [];
    const pack = new PackOfTest(async ({ output, scratchDir }, task) => {
      for (const dir of dirs) expect(existsSync(dir)).toBe(false);
      dirs.push(scratchDir);
      await writeFile(join(scratchDir, 'left'), 'behind');
      seen.push([...(await pack.states())]);
      await output.write(latin1(`task ${String(task)}\n`));
    });
    expect(await runPack(pack.deps(), await pack.payload(3))).toEqual(['done', 'done', 'done']);
    expect(pack.ran).toEqual([0, 1, 2]);
    expect(seen).toEqual([
      ['running', 'launched', 'launched'],
      ['done', 'running', 'launched'],
      ['done', 'done', 'running'],
    ]);
    const bodies = (await pack.worker.results()).map(({ attemptId, final }) => [
      attemptId,
      final?.kind === 'inline' ? Buffer.from(final.body).toString() : '',
    ]);
    expect(bodies.toSorted()).toEqual([
      ['work/0/0', 'task 0\n'],
      ['work/1/0', 'task 1\n'],
      ['work/2/0', 'task 2\n'],
    ]);
    const { notes } = await pack.worker.attempts.told(pack.worker.space);
    expect(notes.map(({ attemptId, kind }) => `${attemptId} ${kind}`).toSorted()).toEqual([
      'work/0/0 end',
      'work/1/0 end',
      'work/2/0 end',
    ]);
    expect((await pack.worker.attempt(idOf(2)))?.invocation).toBe('request-1');
  });

  it('passes over what another has claimed and what was taken back, and does nothing on a second delivery', async () => {
    const pack = new PackOfTest();
    const payload = await pack.payload(4);
    const { attempts, space, clock } = pack.worker;
    await attempts.claim(space, idOf(1), { node: 'other', zone: 'zone' }, clock.now());
    await attempts.orderCancel(space, idOf(2));
    expect(await runPack(pack.deps(), payload)).toEqual(['done', 'refused', 'refused', 'done']);
    expect(pack.ran).toEqual([0, 3]);
    expect(await runPack(pack.deps(), payload)).toEqual(['refused']);
    expect(await pack.worker.attempt(idOf(1))).toMatchObject({ state: 'running', node: 'other' });
  });

  it('takes up no more after one that failed, was told to stop, or lost its race: the place may be to blame', async () => {
    const failing = new PackOfTest((_, task) =>
      task === 1 ? Promise.reject(new Error('it broke')) : Promise.resolve(),
    );
    expect(await runPack(failing.deps(), await failing.payload(3))).toEqual(['done', 'failed']);
    expect(await failing.states()).toEqual(['done', 'failed', 'launched']);

    const losing = new PackOfTest(async () => {
      const { attempts, space, clock } = losing.worker;
      const other = attemptIdOf('work', 0, 1);
      await attempts.create(space, other, clock.now());
      const [taskId, committedAt] = ['work/0' as never, clock.now()];
      const sums = { bytesIn: 0, bytesOut: 0, recordsIn: 0, recordsOut: 0, counters: {} };
      await attempts.commit(space, {
        taskId,
        attemptId: other,
        committedAt,
        final: { kind: 'empty' },
        ...sums,
      });
    });
    expect(await runPack(losing.deps(), await losing.payload(2))).toEqual(['lost-race']);
    expect(losing.ran).toEqual([0]);
  });

  it('takes up none once its job has ended, though it was frozen before the claim while that happened', async () => {
    const pack = new PackOfTest();
    const payload = await pack.payload(3);
    const { attempts, clock } = pack.worker;
    const frozen = Object.create(attempts) as typeof attempts;
    frozen.claim = async (space, id, ...others) => {
      if (id === idOf(1)) await stopAttempts({ attempts, clock }, space, durationMs(0));
      return attempts.claim(space, id, ...others);
    };
    expect(await runPack(pack.deps({ attempts: frozen }), payload)).toEqual(['done', 'refused', 'refused']);
    expect(pack.ran).toEqual([0]);
    for (const task of [1, 2])
      expect(await pack.worker.attempt(idOf(task))).toMatchObject({ state: 'launched', order: 'cancel' });
  });

  it('passes over what was given up, and launched anew, while it was frozen after an end', async () => {
    const pack = new PackOfTest();
    const payload = await pack.payload(3);
    const { attempts, clock } = pack.worker;
    const frozen = Object.create(attempts) as typeof attempts;
    frozen.claim = async (space, id, ...others) => {
      if (id === idOf(1)) {
        await attempts.markLost(space, id, clock.now(), 'unclaimed');
        await attempts.create(space, attemptIdOf('work', 1, 1), clock.now());
      }
      return attempts.claim(space, id, ...others);
    };
    expect(await runPack(pack.deps({ attempts: frozen }), payload)).toEqual(['done', 'refused', 'done']);
    expect(pack.ran).toEqual([0, 2]);
  });

  it('takes up no more once its process is to stop', async () => {
    const stop = new AbortController();
    const pack = new PackOfTest(() => {
      setImmediate(() => {
        stop.abort();
      });
      return new Promise((resolve) => setTimeout(resolve, 20));
    });
    const [outcome, ...others] = await runPack(pack.deps({ stopSignal: stop.signal }), await pack.payload(3));
    expect(['done', 'cancelled']).toContain(outcome);
    expect(others).toEqual([]);
    expect(pack.ran).toEqual([0]);
  });

  it('takes up another only while as much of its time is left as that may take, beside what it stops in', async () => {
    const lasts = async (leftMs: number): Promise<readonly string[]> => {
      const pack = new PackOfTest();
      const endsAt = later(pack.worker.clock.now(), durationMs(leftMs));
      return runPack(pack.deps({ endsAt }), await pack.payload(2, 10_000));
    };
    // Of 30 s, 3 are to stop in; of 11, 1.1.
    expect(await lasts(30_000)).toEqual(['done', 'done']);
    expect(await lasts(11_000)).toEqual(['done']);
  });

  it('calls it no time-out of the task where one stops that found less time than a worker of its own has', async () => {
    let begun = (): void => undefined;
    const works = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const pack = new PackOfTest(async ({ signal }, task) => {
      if (task === 0) return;
      begun();
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      });
    });
    const endsAt = later(pack.worker.clock.now(), durationMs(300_000) satisfies DurationMs);
    const ended = runPack(pack.deps({ endsAt }), await pack.payload(3));
    await works;
    await pack.worker.clock.advance(281_000);
    expect(await ended).toEqual(['done', 'failed']);
    expect((await pack.worker.attempt(idOf(1)))?.failure).toEqual({
      cause: 'interrupted',
      message:
        "it stopped itself 20 s before its environment's time was up, of which attempts before it had taken some",
    });
  });

  it('gives memory back before each', async () => {
    let times = 0;
    const pack = new PackOfTest();
    await runPack(pack.deps(), await pack.payload(3), {
      beforeNext: () => {
        times += 1;
      },
    });
    expect(times).toBe(2);
  });
});
