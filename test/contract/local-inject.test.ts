import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FaultSubject } from '../../src/local/http/fault-hook.ts';
import { startBrake } from '../../src/local/inject/brake.ts';
import { type Injection, parseInjection } from '../../src/local/inject/injection.ts';
import { Injector } from '../../src/local/inject/injector.ts';
import {
  expectFree,
  expectStopped,
  idler,
  injector,
  patience,
  stateOf,
  workOf,
} from './local-inject-support.ts';

const brakeUrl = pathToFileURL(join(import.meta.dirname, '../../src/local/inject/brake.ts')).href;

const noInvocations = {
  lostInvocations: 0,
  duplicateInvocations: 0,
  attempts: { lostInvocations: [], duplicateInvocations: [] },
};

describe('an injection of interruptions', () => {
  it('takes the places of tasks away with a notice, as many as it says, and lets Lambda alone', async () => {
    const harm = injector('spot=1');
    const told: number[] = [];
    const { pid } = idler();
    harm.onWork(workOf(pid));
    for (const place of ['a', 'b'])
      harm.onWork({ ...workOf(pid), place, interrupt: (noticeMs) => told.push(noticeMs) > 0 });
    await expect.poll(() => told, patience).toEqual([120_000]);
    expect(harm.counts()).toMatchObject({ killed: 0, interrupted: 1 });
    expect(stateOf(pid)).toBe('S');
  });
});

describe('an injection of want of memory', () => {
  it('ends as many works as it says, in the way of their host', async () => {
    const harm = injector('memory-hog=1');
    const ended: string[] = [];
    const { pid } = idler();
    for (const place of ['a', 'b'])
      harm.onWork({ ...workOf(pid), place, exhaust: () => void ended.push(place) });
    await expect.poll(() => ended, patience).toHaveLength(1);
    expect(harm.counts()).toMatchObject({ killed: 0, memoryHogs: 1, places: { memoryHogs: ended } });
    expect(stateOf(pid)).toBe('S');
  });
});

describe('a brake', () => {
  it('stops and continues a process by turns, and lets it go when it is closed', async () => {
    const { pid } = idler();
    const brake = startBrake();
    brake.slow(pid, 8);
    await expectStopped(pid);
    await expectFree(pid);
    await expectStopped(pid);
    await brake.close();
    expect(stateOf(pid)).toBe('S');
  });

  it('stops what its processes have started as well', async () => {
    const child = spawn('sh', ['-c', 'sleep 600 & echo $!; wait'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const pid = child.pid ?? 0;
    onTestFinished(() => {
      process.kill(-pid, 'SIGKILL');
    });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const brake = startBrake();
    onTestFinished(() => brake.close());
    brake.slow(pid, 8);
    await expectStopped(Number(line.toString()));
  });

  it.runIf(process.platform === 'linux')(
    'stops programs that lead groups of their own, and lets them go',
    async () => {
      const child = spawn('sh', ['-c', 'setsid sleep 600 & echo $!; wait'], {
        detached: true,
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      const [worker, program] = [child.pid ?? 0, Number(line.toString())];
      onTestFinished(() => {
        for (const pid of [worker, program]) process.kill(-pid, 'SIGKILL');
      });
      const brake = startBrake();
      brake.slow(worker, 8);
      await expectStopped(program);
      await expectFree(program);
      await brake.close();
      expect(stateOf(program)).toBe('S');
    },
  );

  it('leaves nothing stopped when the stack that it serves is killed outright', async () => {
    const { pid } = idler();
    const stack = spawn(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `import { startBrake } from ${JSON.stringify(brakeUrl)}; startBrake().slow(${pid}, 20);`,
      ],
      { stdio: 'ignore' },
    );
    await expectStopped(pid);
    stack.kill('SIGKILL');
    await once(stack, 'exit');
    // Not merely between two stops: so many looks in a row take longer than a turn.
    let free = 0;
    await expect.poll(() => (free = stateOf(pid) === 'S' ? free + 1 : 0), patience).toBeGreaterThan(30);
  });

  it('forgets a process that is gone, and one that never was', async () => {
    const { child, pid } = idler();
    const { pid: other } = idler();
    const brake = startBrake();
    brake.slow(pid, 8);
    await expectStopped(pid);
    child.kill('SIGKILL');
    await once(child, 'exit');
    brake.slow(pid, 8);
    brake.slow(other, 8);
    await expectStopped(other);
    await brake.close();
    expect(stateOf(other)).toBe('S');
  });
});

describe('an injector', () => {
  it('slows the first nodes that take work, each once, and no others', async () => {
    const nodes = [idler(), idler(), idler()].map(({ pid }) => pid);
    const harm = injector('slow=8x2');
    const [first = 0, second = 0, third = 0] = nodes;
    for (const pid of [first, first, second, third, first]) harm.onWork(workOf(pid));
    await expectStopped(first);
    await expectStopped(second);
    expect(stateOf(third)).toBe('S');
    expect(harm.counts()).toEqual({
      slow: 2,
      killed: 0,
      memoryHogs: 0,
      interrupted: 0,
      throttled: 0,
      slowReads: 0,
      coldStarts: 0,
      paused: 0,
      skewed: 0,
      lostObjects: 0,
      corruptObjects: 0,
      ...noInvocations,
      places: {
        slow: [`place-${first}`, `place-${second}`],
        killed: [],
        memoryHogs: [],
        interrupted: [],
        coldStarts: [],
        paused: [],
        ahead: [],
        behind: [],
      },
    });
    await harm.close();
    expect(nodes.map(stateOf)).toEqual(['S', 'S', 'S']);
  });

  it('kills as many as it was told to, while they work', async () => {
    const workers = [idler(), idler(), idler(), idler()];
    const harm = injector('kill=2');
    for (const { pid } of workers) harm.onWork(workOf(pid));
    await expect.poll(() => harm.counts().killed, patience).toBe(2);
    await expect
      .poll(() => workers.filter(({ child }) => child.signalCode === 'SIGKILL').length, patience)
      .toBe(2);
  });

  it('spares a worker whose work is over, and strikes a later one', async () => {
    const { pid: idle, child } = idler();
    const { pid: busy, child: victim } = idler();
    const harm = injector('kill=1');
    let asked = 0;
    harm.onWork(
      workOf(idle, () => {
        asked++;
        return false;
      }),
    );
    await expect.poll(() => asked, patience).toBe(1);
    harm.onWork(workOf(busy));
    await once(victim, 'exit');
    expect(victim.signalCode).toBe('SIGKILL');
    expect(child.signalCode).toBeNull();
    expect(harm.counts()).toEqual({
      slow: 0,
      killed: 1,
      memoryHogs: 0,
      interrupted: 0,
      throttled: 0,
      slowReads: 0,
      coldStarts: 0,
      paused: 0,
      skewed: 0,
      lostObjects: 0,
      corruptObjects: 0,
      ...noInvocations,
      places: {
        slow: [],
        killed: [`place-${busy}`],
        memoryHogs: [],
        interrupted: [],
        coldStarts: [],
        paused: [],
        ahead: [],
        behind: [],
      },
    });
  });

  it('harms nobody once it is closed', async () => {
    const { pid } = idler();
    const harm = injector('slow=8x1,kill=1,throttle=0.95');
    let asked = 0;
    const work = workOf(pid, () => {
      asked++;
      return true;
    });
    harm.onWork(work);
    await harm.close();
    harm.onWork(work);
    expect(refusals(harm, 100)).toHaveLength(0);
    await harm.close();
    expect(stateOf(pid)).toBe('S');
    expect(asked).toBe(0);
    expect(harm.counts()).toMatchObject({ slow: 1, killed: 0, throttled: 0 });
  });
});

const launch: FaultSubject = {
  service: 'lambda',
  operation: 'Invoke',
  resource: 'worker',
  invocationType: 'Event',
};

/** Which of so many launches are refused. */
const refusals = (harm: Injector, launches: number): readonly number[] =>
  Array.from({ length: launches }, (_, index) => index).filter(() => harm.onRequest(launch) !== undefined);

describe('refused launches', () => {
  it('are about their share, told in the words of each service, and the same for the same seed', () => {
    const injection: Injection = parseInjection('throttle=0.3,seed=7');
    const refused = refusals(new Injector(injection), 1_000);
    expect(refused.length).toBeGreaterThan(250);
    expect(refused.length).toBeLessThan(350);
    expect(refusals(new Injector(injection), 1_000)).toEqual(refused);
    expect(refusals(new Injector({ ...injection, seed: 8 }), 1_000)).not.toEqual(refused);
  });

  it('are asynchronous invocations and RunTask, and nothing else', () => {
    const harm = new Injector(parseInjection('throttle=0.95'));
    const told = (subject: Partial<FaultSubject>) =>
      new Set(Array.from({ length: 100 }, () => harm.onRequest({ ...launch, ...subject })?.error?.code));
    expect(told({})).toEqual(new Set([undefined, 'TooManyRequestsException']));
    expect(told({ service: 'ecs', operation: 'RunTask' })).toEqual(
      new Set([undefined, 'ThrottlingException']),
    );
    expect(told({ invocationType: 'RequestResponse' })).toEqual(new Set([undefined]));
    expect(told({ service: 'ecs', operation: 'StopTask' })).toEqual(new Set([undefined]));
    expect(told({ service: 's3', operation: 'PutObject' })).toEqual(new Set([undefined]));
    expect(told({ service: 'dynamodb', operation: 'UpdateItem' })).toEqual(new Set([undefined]));
  });

  it('loses and corrupts objects that workers write for each other alone, few between, the same for one seed', () => {
    const harmsOf = (seed: number): string => {
      const harm = new Injector(parseInjection(`lose-object=2,corrupt-object=3,seed=${seed}`));
      const keys = Array.from({ length: 20 }, (_, task) => `jobs/a-1/data/7f/map/${task}/0`);
      return keys
        .map((key) => {
          expect(harm.onWritten({ bucket: 'data', key: 'jobs/a-1/plans/x/plan.json' })).toBeUndefined();
          expect(harm.onWritten({ bucket: 'data', key: 'output/a-1/part-00000' })).toBeUndefined();
          return { lose: 'L', corrupt: 'C', none: '.' }[harm.onWritten({ bucket: 'data', key }) ?? 'none'];
        })
        .join('');
    };
    for (const seed of [1, 2, 3]) {
      const harms = harmsOf(seed);
      expect(harmsOf(seed)).toBe(harms);
      expect(harms.replaceAll('.', '').split('').sort().join('')).toBe('CCCLL');
      expect(harms).not.toMatch(/[CL]\.\.\.+[CL]/);
    }
    expect(new Set([1, 2, 3, 4, 5, 6].map(harmsOf)).size).toBeGreaterThan(2);
  });
});

describe('launches that Lambda has accepted', () => {
  const launchOf = (attemptId: string): Buffer =>
    Buffer.from(
      JSON.stringify({
        jobId: 'a-0123456789ab',
        attemptId,
        shards: 1,
        stageKey: 's',
        inputs: [],
        heartbeatMs: 1,
      }),
    );

  it('are lost or repeated, few between, the same for one seed; other events are let alone', () => {
    const faultsOf = (seed: number) => {
      const harm = injector(`lose-invocation=2,duplicate-invocation=3,seed=${seed}`);
      const faults = Array.from({ length: 20 }, (_, task) => {
        expect(harm.onAccepted(Buffer.from('{"name":"recurring"}'))).toBeUndefined();
        return harm.onAccepted(launchOf(`map/${task}/0`));
      });
      const struck = (kind: string) =>
        faults.flatMap((fault, task) => (fault === kind ? [`map/${task}/0`] : []));
      expect(harm.counts()).toMatchObject({
        lostInvocations: 2,
        duplicateInvocations: 3,
        attempts: { lostInvocations: struck('lose'), duplicateInvocations: struck('repeat') },
      });
      return faults;
    };
    for (const seed of [1, 2, 3]) expect(faultsOf(seed)).toEqual(faultsOf(seed));
    expect(faultsOf(1)).not.toEqual(faultsOf(2));
  });

  it('are let alone where nothing is to be lost, and once the injection is closed', async () => {
    expect(injector('kill=1').onAccepted(launchOf('map/0/0'))).toBeUndefined();
    const harm = injector('lose-invocation=1000');
    await harm.close();
    expect(Array.from({ length: 9 }, () => harm.onAccepted(launchOf('map/0/0'))).join('')).toBe('');
  });
});

describe('slow reads', () => {
  it('are reads of objects alone, about their share, and the same for the same seed', () => {
    const delaysOf = (seed: number, operation = 'GetObject') => {
      const harm = injector(`slow-read=0.2@1.5,seed=${seed}`);
      const delays = Array.from(
        { length: 1_000 },
        () => harm.onRequest({ service: 's3', operation, resource: 'data/key' })?.delayMs,
      );
      const late = delays.filter((ms) => ms === 1_500).length;
      expect(harm.counts().slowReads).toBe(late);
      return { delays, late };
    };
    expect(delaysOf(1).late).toBeGreaterThan(150);
    expect(delaysOf(1).late).toBeLessThan(250);
    expect(delaysOf(1)).toEqual(delaysOf(1));
    expect(delaysOf(1)).not.toEqual(delaysOf(2));
    expect(delaysOf(1, 'PutObject').late).toBe(0);
  });
});

describe('slow starts', () => {
  it('are about their share, told by their places, the same for the same seed, and none once it is closed', async () => {
    const startsOf = async (seed: number) => {
      const harm = injector(`cold-start=0.3@2.5,seed=${seed}`);
      const places = Array.from({ length: 1_000 }, (_, start) => `place-${start}`);
      const late = places.filter((place) => {
        const ms = harm.onStart({ name: 'worker', place });
        expect([0, 2_500]).toContain(ms);
        return ms > 0;
      });
      expect(harm.counts()).toMatchObject({ coldStarts: late.length, places: { coldStarts: late } });
      await harm.close();
      expect(places.filter((place) => harm.onStart({ name: 'worker', place }) > 0)).toEqual([]);
      return late;
    };
    const late = await startsOf(1);
    expect(late.length).toBeGreaterThan(250);
    expect(late.length).toBeLessThan(350);
    expect(await startsOf(1)).toEqual(late);
    expect(await startsOf(2)).not.toEqual(late);
  });
});
