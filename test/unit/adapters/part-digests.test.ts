import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { HandClock } from '../../support/hand-clock.ts';
import { startFakeS3 } from '../../support/fake-s3.ts';

/** What S3 says where a bucket has Object Lock with a default retention. */
const demand =
  'Content-MD5 OR x-amz-checksum- HTTP header is required for Put Part requests with Object Lock parameters';

/** An S3 whose bucket "locked" demands a digest of each part, and a store that sends late parts twice, as workers have. */
async function fake() {
  const asked: string[] = [];
  const { client } = await startFakeS3(
    (request, response) => {
      void buffer(request).then((body) => {
        const { pathname, searchParams } = new URL(request.url ?? '', 'http://s3');
        const digest = request.headers['content-md5'];
        asked.push(
          `${pathname} ${String(searchParams.get('partNumber'))} ${digest === undefined ? '-' : 'MD5'}`,
        );
        const isRight = digest === createHash('md5').update(body).digest('base64');
        if (digest === undefined ? !pathname.startsWith('/locked/') : isRight)
          return response.writeHead(200, { etag: '"e"' }).end();
        response.writeHead(400, { 'content-type': 'application/xml' });
        return response.end(`<Error><Code>InvalidRequest</Code><Message>${demand}</Message></Error>`);
      });
    },
    { requestChecksumCalculation: 'WHEN_REQUIRED' },
  );
  const store = new S3ObjectStore(client, { paceHost: new HandClock(), onHedgedPart: () => undefined });
  const send = (bucket: string, number: number) =>
    store.uploadPart({ bucket, key: 'k', uploadId: 'u' }, number, Buffer.alloc(100_000, number));
  return { send, asked };
}

it('sends parts with their MD5 to a bucket that demands one, and to no other', async () => {
  const { send, asked } = await fake();
  expect(await send('locked', 1)).toEqual({ number: 1, etag: '"e"' });
  expect(await send('locked', 2)).toEqual({ number: 3, etag: '"e"' });
  expect(await send('open', 1)).toEqual({ number: 1, etag: '"e"' });
  expect(asked).toEqual(['/locked/k 1 -', '/locked/k 1 MD5', '/locked/k 3 MD5', '/open/k 1 -']);
});
