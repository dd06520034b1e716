import type { Readable } from 'node:stream';

/** Longer lines are no share. */
const longestLine = 40;

/** A share from 0 to 1 as people and programs write it; undefined of another text. */
function shareIn(line: string): number | undefined {
  const text = line.trim();
  const share = /^[\d.eE+-]+$/.test(text) ? Number(text) : NaN;
  return share >= 0 && share <= 1 ? share : undefined;
}

/**
 * Reads what a program tells of its progress: lines, each the share of its work that is done by then, from 0 to 1. Other lines
 * are passed over, and the first of them is told, cut to 40 characters. Reads to the end whatever comes, so that the program
 * never waits for it, and keeps no more than a line.
 */
export function readShares(
  pipe: Readable,
  on: { readonly share: (share: number) => void; readonly other: (line: string) => void },
): void {
  let rest = '';
  let hasTold = false;
  const take = (line: string): void => {
    const share = line.length > longestLine ? undefined : shareIn(line);
    if (share !== undefined) on.share(share);
    else if (!hasTold) on.other(line.slice(0, longestLine));
    hasTold ||= share === undefined;
  };
  pipe.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('latin1')).split('\n');
    // One character more than a share may have, so that it is none however it goes on.
    rest = (lines.pop() ?? '').slice(0, longestLine + 1);
    for (const line of lines) take(line);
  });
  pipe.on('error', () => undefined);
}
