// Sessions of a web log: visits of one address with less than half an hour between two requests.
import { job, read } from 'outrider';

interface Request {
  readonly address: string;
  readonly path: string;
  readonly atMs: number;
  readonly bytes: number;
}

const line = /^(\S+) \S+ \S+ \[([^\]]+)\] "(?:GET|POST) (\S+) [^"]*" \d+ (\d+|-)$/;
const pauseMs = 30 * 60_000;

const requests = read.text().flatMap((text, context): Request[] => {
  const [, address, at, path, bytes] = line.exec(text) ?? [];
  if (address === undefined || at === undefined || path === undefined) {
    context.count('unreadable');
    return [];
  }
  return [{ address, path, atMs: Date.parse(at), bytes: Number(bytes) || 0 }];
});

export default job(
  'sessions',
  requests
    .groupBy(({ address }) => address)
    .flatMap(function* ([address, visits]) {
      visits.sort((a, b) => a.atMs - b.atMs);
      let open: { start: number; end: number; requests: number; bytes: number } | undefined;
      for (const { atMs, bytes } of visits) {
        if (open !== undefined && atMs - open.end < pauseMs) {
          open.end = atMs;
          open.requests++;
          open.bytes += bytes;
          continue;
        }
        if (open !== undefined) yield { address, ...open };
        open = { start: atMs, end: atMs, requests: 1, bytes };
      }
      if (open !== undefined) yield { address, ...open };
    })
    .sortBy(({ address, start }) => [address, start])
    .write.csv(['address', 'start', 'end', 'requests', 'bytes']),
);
