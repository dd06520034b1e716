import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { guardRequest } from '../../../src/local/http/guard.ts';

function requestTo(host: string): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  request.rawHeaders = ['Host', host];
  request.headers = { host };
  request.method = 'GET';
  request.url = '/';
  return request;
}

it.each([
  ['127.0.0.1', 80, undefined],
  ['localhost', 80, undefined],
  ['127.0.0.1:80', 80, undefined],
  ['localhost', 8080, 403],
  ['127.0.0.1', 8080, 403],
  ['127.0.0.1:8080', 8080, undefined],
  ['example.com', 80, 403],
  ['', 80, 403],
])('a request to the host %j of a server at port %d is refused: %s', (host, port, status) => {
  expect(guardRequest(requestTo(host), port, new Set())?.status).toBe(status);
});
