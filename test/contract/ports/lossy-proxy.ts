import { once } from 'node:events';
import { createServer, request as forward } from 'node:http';

/** A proxy that delivers requests but can lose answers: what makes an SDK repeat a write that was done. */
export interface LossyProxy {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string;
  /** Loses the answers to the next `count` requests, after they were served. */
  loseNext(count: number): void;
  /** Number of answers lost so far. */
  lost(): number;
  close(): Promise<void>;
}

/** Starts a proxy before the server at `target`. Headers pass unchanged, the signed host included. */
export async function startLossyProxy(target: string): Promise<LossyProxy> {
  let toLose = 0;
  let lost = 0;
  const { hostname, port } = new URL(target);
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    const onward = forward({ hostname, port, method, path: url, headers }, (answer) => {
      if (toLose > 0) {
        toLose--;
        lost++;
        answer.resume().once('end', () => response.destroy());
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    loseNext(count) {
      toLose = count;
    },
    lost: () => lost,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
