import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';

/** A request that ends when told to. */
function request(meter: AttemptMeter): {
  end: (sizeBytes: number) => Promise<void>;
  fail: () => Promise<void>;
} {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const done = meter.fetching(() => promise);
  return {
    end: async (sizeBytes) => {
      resolve(new Uint8Array(sizeBytes));
      await done;
    },
    fail: async () => {
      reject(new Error('no answer'));
      await expect(done).rejects.toThrow('no answer');
    },
  };
}

function meterOf(clock: MemoryClock): AttemptMeter {
  const meter = new AttemptMeter(clock, new AbortController().signal, () => 0);
  meter.readsStages = true;
  return meter;
}

describe('the time in which outputs are fetched', () => {
  it('is nothing before the first request', () => {
    expect(meterOf(new MemoryClock()).progress().fetched).toEqual({ bytes: 0, ms: 0 });
  });

  it('counts once where requests overlap, and not between them', async () => {
    const clock = new MemoryClock();
    const meter = meterOf(clock);
    const first = request(meter);
    await clock.advance(100);
    const second = request(meter);
    await clock.advance(200);
    await first.end(10);
    await clock.advance(200);
    await second.end(5);
    await clock.advance(1_000);
    expect(meter.progress().fetched).toEqual({ bytes: 15, ms: 500 });
    const third = request(meter);
    await clock.advance(30);
    await third.end(1);
    expect(meter.progress().fetched).toEqual({ bytes: 16, ms: 530 });
  });

  it('counts a request that is under way, whose bytes come when it ends', async () => {
    const clock = new MemoryClock();
    const meter = meterOf(clock);
    const one = request(meter);
    await clock.advance(70);
    expect(meter.progress().fetched).toEqual({ bytes: 0, ms: 70 });
    await one.end(9);
    expect(meter.progress().fetched).toEqual({ bytes: 9, ms: 70 });
  });

  it('counts a request that fails, and ends with it', async () => {
    const clock = new MemoryClock();
    const meter = meterOf(clock);
    const one = request(meter);
    await clock.advance(20);
    await one.fail();
    await clock.advance(20);
    expect(meter.progress().fetched).toEqual({ bytes: 0, ms: 20 });
  });

  it('runs beside the clocks of phases', async () => {
    const clock = new MemoryClock();
    const meter = meterOf(clock);
    meter.enter('compute');
    const one = request(meter);
    await clock.advance(50);
    await one.end(1);
    expect(meter.progress()).toMatchObject({
      phaseMs: { init: 0, read: 0, compute: 50, write: 0 },
      fetched: { ms: 50 },
    });
  });
});
