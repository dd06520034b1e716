import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';

/** Answers in AWS's JSON protocol of the given version, with an id for the request. */
export function answerJson(
  response: ServerResponse,
  version: '1.0' | '1.1',
  status: number,
  document: unknown,
): void {
  const text = JSON.stringify(document);
  response.writeHead(status, {
    'content-type': `application/x-amz-json-${version}`,
    'content-length': Buffer.byteLength(text),
    'x-amzn-requestid': randomUUID(),
  });
  response.end(text);
}
