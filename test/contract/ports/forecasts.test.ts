import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { S3ForecastStore } from '../../../src/adapters/aws/s3-forecast-store.ts';
import { MemoryForecastStore } from '../../../src/adapters/memory/memory-forecast-store.ts';
import { encodeForecast } from '../../../src/contracts/forecast.ts';
import { forecastKey } from '../../../src/contracts/keys.ts';
import { describeForecastStore, forecastOf } from './forecast-store-suite.ts';
import { type LossyProxy, startLossyProxy } from './lossy-proxy.ts';
import { startObjects } from './servers.ts';

describeForecastStore('memory', () => new MemoryForecastStore());

describe('over the local S3', () => {
  let proxy: LossyProxy;
  let server: Awaited<ReturnType<typeof startObjects>>;
  let store: S3ForecastStore;
  beforeAll(async () => {
    server = await startObjects(async (endpoint) => {
      proxy = await startLossyProxy(endpoint);
      return proxy.endpoint;
    });
    store = new S3ForecastStore(server.client, 'books');
  });
  afterAll(async () => {
    await server.close();
    await proxy.close();
  });

  describeForecastStore('S3', () => store);

  const write = (name: string, Body: string): Promise<unknown> =>
    server.client.send(new PutObjectCommand({ Bucket: 'books', Key: forecastKey(name), Body }));

  it.each([
    ['no JSON', '{', /JSON/],
    ['nothing', '', /JSON/],
    [
      'another format',
      JSON.stringify({ ...JSON.parse(encodeForecast(forecastOf())), version: 0 }),
      /version/,
    ],
    ['a list', '[]', /./],
  ])('tells what it is that cannot be read, %s, and lets it be replaced', async (what, body, why) => {
    const name = `unread-${what.replaceAll(' ', '-')}`;
    await write(name, body);
    const found = await store.get(name);
    expect(found?.forecast).toBeUndefined();
    expect(found?.unreadable).toMatch(why);
    expect(await store.put(name, forecastOf(), found?.tag)).toBe('stored');
    expect((await store.get(name))?.forecast).toEqual(forecastOf());
  });

  it('takes a write whose answer is lost for its own, and no rival for it', async () => {
    const withLoss = async <T>(call: () => Promise<T>): Promise<T> => {
      const before = proxy.lost();
      proxy.loseNext(1);
      const answer = await call();
      expect(proxy.lost()).toBe(before + 1);
      return answer;
    };
    expect(await withLoss(() => store.put('lost', forecastOf(), undefined))).toBe('stored');
    const tag = (await store.get('lost'))?.tag;
    expect(await withLoss(() => store.put('lost', forecastOf({ runs: 2 }), tag))).toBe('stored');
    expect(await withLoss(() => store.put('lost', forecastOf({ runs: 3 }), tag))).toBe('stale');
    expect((await store.get('lost'))?.forecast?.runs).toBe(2);
  });

  it('says that a bucket is away, and does not take that for nothing learned', async () => {
    const away = new S3ForecastStore(server.client, 'no-such-bucket-there');
    await expect(away.get('x')).rejects.toMatchObject({ name: 'StoreUnavailable' });
    await expect(away.put('x', forecastOf(), 'tag')).rejects.toMatchObject({ name: 'StoreUnavailable' });
  });
});
