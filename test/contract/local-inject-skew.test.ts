import { describe, expect, it } from 'vitest';
import { injector } from './local-inject-support.ts';
import { decode, useLocalLambda } from './local-lambda-support.ts';

const { fixture, invoke, stack, start } = useLocalLambda();

describe('skewed clocks', () => {
  it('are about their share, on both sides, told by their places, the same for the same seed, and none once it is closed', async () => {
    const clocksOf = async (seed: number) => {
      const harm = injector(`skew=0.3@90,seed=${seed}`);
      const places = Array.from({ length: 1_000 }, (_, start) => `place-${start}`);
      const clocks = places.map((place) => ({ place, ms: harm.onClock({ name: 'worker', place }) }));
      const those = (ms: number) => clocks.filter((clock) => clock.ms === ms).map(({ place }) => place);
      const [ahead, behind] = [those(90_000), those(-90_000)];
      expect(those(0)).toHaveLength(1_000 - ahead.length - behind.length);
      expect(harm.counts()).toMatchObject({
        skewed: ahead.length + behind.length,
        places: { ahead, behind },
      });
      await harm.close();
      expect(places.filter((place) => harm.onClock({ name: 'worker', place }) !== 0)).toEqual([]);
      return { ahead, behind };
    };
    const drawn = await clocksOf(1);
    for (const side of Object.values(drawn)) {
      expect(side.length).toBeGreaterThan(100);
      expect(side.length).toBeLessThan(200);
    }
    expect(await clocksOf(1)).toEqual(drawn);
    expect(await clocksOf(2)).not.toEqual(drawn);
  });

  it.each([7_200_000, -7_200_000])(
    'are off by %i ms in an environment and in the processes of Node that it starts, but for what it counts from a start',
    async (aheadMs) => {
      const code = `
      const told = () => ({
        now: Date.now(), made: new Date().getTime(), said: Date.parse(Date()), given: new Date(5).getTime(),
        isDate: new Date() instanceof Date, origin: Math.round(performance.timeOrigin + performance.now()),
      });
      if (require.main === module) console.log(JSON.stringify(told()));
      exports.handler = async (event, context) => {
        const began = performance.now();
        await new Promise((resolve) => setTimeout(resolve, 50));
        const { spawn } = require('node:child_process');
        const child = spawn(process.execPath, [__filename], { env: {}, stdio: ['ignore', 'pipe', 'inherit'] });
        let text = '';
        for await (const chunk of child.stdout) text += chunk;
        return { own: told(), child: JSON.parse(text), tookMs: performance.now() - began,
          leftMs: context.getRemainingTimeInMillis() };
      };`;
      const asked: string[] = [];
      await start([fixture('clock', code)], {
        onClock: ({ name, place }) => {
          asked.push(`${name} ${place}`);
          return aheadMs;
        },
      });
      const before = Date.now();
      const { own, child, tookMs, leftMs } = decode(await invoke('clock')) as {
        readonly [told in 'own' | 'child']: Readonly<Record<string, number>>;
      } & { readonly [length in 'tookMs' | 'leftMs']: number };
      const after = Date.now();
      for (const { now, made, said, origin, ...others } of [own, child]) {
        expect(others).toEqual({ given: 5, isDate: true });
        for (const at of [now, made, (said ?? 0) + 999, origin]) {
          expect(at).toBeGreaterThanOrEqual(before + aheadMs - 50);
          expect(at).toBeLessThanOrEqual(after + aheadMs + 1_000);
        }
      }
      expect(tookMs).toBeLessThanOrEqual(after - before + 1);
      // The time that is left is right, since the service is on the same host.
      expect(leftMs).toBeGreaterThan(0);
      expect(leftMs).toBeLessThanOrEqual(20_000);
      expect(asked).toEqual(
        stack.server?.environments().map(({ environmentId }) => `clock ${environmentId}`),
      );
    },
  );
});
