import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveInvocations } from '../../functions/shared/runtime-api.ts';

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

/** Lambda's Runtime API, with so many invocations to hand out. */
async function runtimeApi(events: readonly unknown[]) {
  const told: [string, unknown][] = [];
  let next = 0;
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      if (request.method === 'POST') told.push([request.url ?? '', JSON.parse(body)]);
      const headers = {
        'lambda-runtime-aws-request-id': `request-${String(next)}`,
        'lambda-runtime-deadline-ms': String(Date.now() + 60_000),
      };
      if (request.method === 'GET') {
        response.writeHead(200, headers).end(JSON.stringify(events[next++]));
        return;
      }
      response.writeHead(202).end('{"status":"OK"}');
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { env: { AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${String(port)}` }, told };
}

const prefix = '/2018-06-01/runtime/invocation';

describe('a worker that is its own runtime', () => {
  it('takes invocations in turn, and tells what came of each', async () => {
    const { env, told } = await runtimeApi([{ n: 1 }, { n: 2 }, { n: 3 }]);
    const seen: unknown[] = [];
    await serveInvocations(
      env,
      (event, context) => {
        seen.push([event, context.awsRequestId, context.getRemainingTimeInMillis() > 30_000]);
        const { n } = event as { n: number };
        if (n === 2) return Promise.reject(new TypeError('no such payload'));
        return Promise.resolve(n === 3 ? undefined : { outcome: 'done' });
      },
      3,
    );
    expect(seen).toEqual([
      [{ n: 1 }, 'request-0', true],
      [{ n: 2 }, 'request-1', true],
      [{ n: 3 }, 'request-2', true],
    ]);
    expect(told).toEqual([
      [`${prefix}/request-0/response`, { outcome: 'done' }],
      [
        `${prefix}/request-1/error`,
        {
          errorType: 'TypeError',
          errorMessage: 'no such payload',
          trace: expect.arrayContaining(['TypeError: no such payload']) as unknown,
        },
      ],
      [`${prefix}/request-2/response`, null],
    ]);
  });

  it('says that it runs in Lambda alone', async () => {
    await expect(serveInvocations({}, () => Promise.resolve(), 1)).rejects.toThrow(
      'AWS_LAMBDA_RUNTIME_API is not set',
    );
  });
});
