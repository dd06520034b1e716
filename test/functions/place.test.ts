import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fargatePlace } from '../../functions/shared/place.ts';
import { Setting } from '../../src/contracts/settings.ts';

const arn = 'arn:aws:ecs:us-east-1:000000000000:task/cluster/1';

describe('the place of a task on Fargate', () => {
  let server: Server;
  let env: Record<string, string>;
  /** How often the service answers that it knows no task, before it answers. */
  let refusals = 0;

  beforeAll(async () => {
    // As ECS answers: the name of the zone, and no id.
    server = createServer(({ url }, response) => {
      if (refusals-- > 0) {
        response.writeHead(500).end();
        return;
      }
      const task = { TaskARN: arn, AvailabilityZone: 'us-east-1b', Containers: [] };
      response.end(JSON.stringify(url === '/v4/task' ? task : {}));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    env = {
      ECS_CONTAINER_METADATA_URI_V4: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/v4`,
    };
  });

  afterAll(() => {
    server.close();
  });

  it.each([
    ['the id of its zone where that is told', 'us-east-1a=use1-az6,us-east-1b=use1-az4', 'use1-az4'],
    ['its name where ids of others are told alone', 'us-east-1a=use1-az6', 'us-east-1b'],
    ['its name where something else is told', 'use1-az4=us-east-1b', 'us-east-1b'],
  ])('has %s', async (_what, told, zone) => {
    expect(await fargatePlace({ ...env, [Setting.zoneIds]: told })).toEqual({ node: arn, zone });
  });

  it('is asked for again twice, and then nobody knows it', async () => {
    refusals = 2;
    expect(await fargatePlace(env)).toEqual({ node: arn, zone: 'us-east-1b' });
    refusals = 3;
    expect(await fargatePlace(env)).toEqual({ node: `fargate/${hostname()}` });
  });

  it('has the name of its zone where no ids are told, and none where nobody answers', async () => {
    expect(await fargatePlace(env)).toEqual({ node: arn, zone: 'us-east-1b' });
    expect(await fargatePlace({})).toEqual({ node: `fargate/${hostname()}` });
  });
});
